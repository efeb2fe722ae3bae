#!/usr/bin/env bash
# Throughput of common tools with bash and coreutils alone. Leaves coreutils.csv
# in the results directory; each figure is the best of three.
set -euo pipefail
export LC_ALL=C # a decimal point in EPOCHREALTIME, and bytewise sort

results=${ASSAY_RESULTS_DIR:-$PWD}
csv=$results/coreutils.csv
scratch=$(mktemp -d "$results/scratch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# best_us COMMAND…: the shortest of three runs, in microseconds.
best_us() {
  local best=0 began us
  for _ in 1 2 3; do
    began=${EPOCHREALTIME/./}
    "$@" >"$scratch/out"
    us=$((${EPOCHREALTIME/./} - began))
    if ((best == 0 || us < best)); then best=$us; fi
  done
  echo $((best > 0 ? best : 1))
}

# row NAME METRIC AMOUNT COMMAND…: AMOUNT / time; bytes and microseconds give MB/s.
row() {
  local name=$1 metric=$2 amount=$3 us
  shift 3
  us=$(best_us "$@")
  awk -v n="$name" -v m="$metric" -v a="$amount" -v us="$us" \
    'BEGIN { printf "%s,%.1f,%s\n", n, a / us, m }' | tee -a "$csv"
}

hash_zeros() { head -c "$1" /dev/zero | sha256sum; }
write_file() { dd if=/dev/zero of="$scratch/file" bs=1M count="$1" conv=fsync status=none; }

echo "model,performance,metric" >"$csv"
seq 1 400000 | shuf --random-source=<(seq 1 1000000) >"$scratch/text"
bytes=$(wc -c <"$scratch/text")

row sha256sum sha256MBs $((128 << 20)) hash_zeros $((128 << 20))
row gzip gzipMBs "$bytes" gzip -1 -c "$scratch/text"
row sort sortMBs "$bytes" sort --parallel=1 "$scratch/text"
row disk diskWriteMBs $((64 << 20)) write_file 64
