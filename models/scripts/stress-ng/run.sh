#!/usr/bin/env bash
# The cpu and the stream stressor of stress-ng, SECONDS each (default 5). Its
# figures compare machines with the same version of stress-ng, nothing else.
set -euo pipefail
export LC_ALL=C

if ! command -v stress-ng >/dev/null; then
  echo "stress-ng is not installed; on Debian: apt-get install stress-ng" >&2
  exit 1
fi

seconds=${1:-5}
results=${ASSAY_RESULTS_DIR:-$PWD}
cd "$results" # stress-ng leaves temporary files in the current directory
stress-ng --version

# field FILE KEY: the value of a key in the YAML that stress-ng wrote.
field() {
  awk -v key="$2:" '$1 == key { print $2; found = 1; exit } END { exit !found }' "$1" && return
  echo "stress-ng: $1 has no $2; did the stressor run long enough?" >&2
  return 1
}

stress-ng --cpu 0 --cpu-method matrixprod --timeout "${seconds}s" --metrics --yaml cpu.yaml
stress-ng --stream 1 --timeout "${seconds}s" --metrics --yaml stream.yaml 2>&1 | tee stream.log

ops=$(field cpu.yaml bogo-ops-per-second-real-time)
# "stream: memory rate: 11071.88 MB read/sec, …"; older versions say "11071.88 MB/sec".
rate=$(sed -n 's/.*memory rate: \([0-9.]*\) MB.*/\1/p' stream.log | head -n 1)
if [[ -z $rate ]]; then
  echo "stress-ng: it gave no memory rate; a stream run needs some seconds (see stream.log)" >&2
  exit 1
fi
echo "matrixProductOpsPerSecond=$ops"
echo "streamReadMBs=$rate"
