#!/usr/bin/env bash
# Three fio jobs on a file of SIZE (default 256M) in the results directory. Leaves
# fio.csv there, and the terse output of fio that it was read from.
set -euo pipefail
export LC_ALL=C

if ! command -v fio >/dev/null; then
  echo "fio is not installed; on Debian: apt-get install fio" >&2
  exit 1
fi

size=${1:-256M}
results=${ASSAY_RESULTS_DIR:-$PWD}
csv=$results/fio.csv
file=$results/fio.data
trap 'rm -f "$file"' EXIT

fio --version
# run NAME OPTION…: one job; its terse output, version 3, stays in NAME.terse.
run() {
  local name=$1
  shift
  fio --name="$name" --filename="$file" --size="$size" --ioengine=psync --invalidate=1 \
    --output-format=terse --terse-version=3 --output="$results/$name.terse" "$@"
}

# field NAME N: field N of a job's terse line. Field 5 is the error number, 7 and 48
# are the bandwidth of reads and writes in KiB/s, 49 is the rate of writes.
field() {
  awk -F ';' -v n="$2" -v job="$1" '
    $1 == 3 && $3 == job { if ($5 == 0) { print $n; ok = 1 } }
    END { exit !ok }' "$results/$1.terse" && return
  echo "fio: $results/$1.terse has no result of the job $1" >&2
  return 1
}

run seqwrite --rw=write --bs=1M --fsync=16 --end_fsync=1
run seqread --rw=read --bs=1M
run syncwrite --rw=randwrite --bs=4k --fdatasync=1 --runtime=3 --time_based

mbs() { awk -v kib="$1" 'BEGIN { printf "%.3f", kib * 1024 / 1e6 }'; }
write=$(field seqwrite 48)
read=$(field seqread 7)
iops=$(field syncwrite 49)
cat >"$csv" <<END
model,performance,metric
write,$(mbs "$write"),writeMBs
read,$(mbs "$read"),readMBs
sync-write,$iops,syncWriteIops
END
cat "$csv"
