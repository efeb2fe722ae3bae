#!/usr/bin/env bash
# HPC Challenge with PROCESSES MPI processes (default 2) in a grid of one row.
# Leaves hpcc.csv and the program's own hpccoutf.txt in the results directory.
set -euo pipefail
export LC_ALL=C

for tool in mpirun hpcc; do
  if ! command -v "$tool" >/dev/null; then
    echo "hpcc: $tool is not installed; on Debian: apt-get install hpcc openmpi-bin" >&2
    exit 1
  fi
done

processes=${1:-2}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
results=${ASSAY_RESULTS_DIR:-$PWD}
csv=$results/hpcc.csv
out=$results/hpccoutf.txt

cd "$results"
rm -f "$out" "$csv" # hpcc appends to what an earlier run left
sed "s/^2            Qs/$processes            Qs/" "$here/hpccinf.txt" >hpccinf.txt

# One thread a process: the processes are the parallelism that is measured.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
echo "hpcc: $processes processes; its output goes to $out"
# A process that waits yields its CPU: on a machine that is not idle the one it waits
# for may need it.
mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -np "$processes" hpcc </dev/null

# hpcc exits 0 also when a residual is too large; it says so in its summary.
if ! grep -qx 'Success=1' "$out"; then
  echo "hpcc: $out has no Success=1: a benchmark failed its own check, or did not finish" >&2
  exit 1
fi

# value NAME: a figure of the summary.
value() {
  local line
  if ! line=$(grep -m 1 "^$1=" "$out"); then
    echo "hpcc: $out has no $1" >&2
    return 1
  fi
  echo "${line#*=}"
}

hpl=$(awk -v t="$(value HPL_Tflops)" 'BEGIN { printf "%.6g", t * 1000 }')
triad=$(value StarSTREAM_Triad)
ptrans=$(value PTRANS_GBs)
gups=$(value MPIRandomAccess_GUPs)
dgemm=$(value StarDGEMM_Gflops)
latency=$(value AvgPingPongLatency_usec)
cat >"$csv" <<END
model,performance,metric
HPL,$hpl,hplGflops
STREAM,$triad,streamTriadGBs
PTRANS,$ptrans,ptransGBs
RandomAccess,$gups,randomAccessGups
DGEMM,$dgemm,dgemmGflops
PingPong,$latency,pingPongLatencyUs
END
cat "$csv"
