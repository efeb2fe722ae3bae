#!/usr/bin/env bash
# One acceptance test: prints key=value lines and ends 0 when it measured, 1 when the
# hardware is wrong, 2 after a line with _SKIP where it does not apply, and 3 when it
# could not measure.
#
#   run.sh probe NAME ERRORS OPTION…   a probe of the binary; ERRORS names the metric of
#                                      results that were wrong, - for none of our own
#   run.sh cpu MIB                     every CPU computes a digest that is known
#   run.sh disk MIB                    what is written comes back
set -euo pipefail
export LC_ALL=C # a decimal point

# give_up TEXT: the test itself failed, which says nothing of the hardware.
give_up() {
  echo "$1" >&2
  exit 3
}

# need TOOL…: all of them are here.
need() {
  local tool
  for tool; do
    command -v "$tool" >/dev/null || give_up "$tool is not installed"
  done
}

scratch= # a directory that goes when this ends
trap '[[ -z $scratch ]] || rm -rf "$scratch"' EXIT

probe() {
  local name=$1 errors=$2 code=0
  shift 2
  [[ -n ${ASSAY_BIN:-} ]] || give_up "ASSAY_BIN names the assay binary, and is not set; assay sets it for every rank"
  "$ASSAY_BIN" probe "$name" "$@" || code=$?
  case $code in
    0) [[ $errors == - ]] || echo "$errors=0" ;;
    3) # a result was wrong
      [[ $errors == - ]] || echo "$errors=1"
      exit 1
      ;;
    *) give_up "the probe $name ended with $code" ;;
  esac
}

# digest CPU MIB: sha256 of zeros, computed on one CPU where that can be said.
digest() {
  local pin=()
  if command -v taskset >/dev/null && taskset -c "$1" true 2>/dev/null; then pin=(taskset -c "$1"); fi
  head -c "$(($2 << 20))" /dev/zero | ${pin[@]+"${pin[@]}"} sha256sum | cut -d' ' -f1
}

cpu() {
  need sha256sum head nproc mktemp
  local mib=$1 cpus want wrong=0 began us i got
  case $mib in
    32) want=83ee47245398adee79bd9c0a8bc57b821e92aba10f5f9ade8a5d1fae4d8c4302 ;;
    64) want=3b6a07d0d404fab4e23b6d34bc6696a6a312dd92821332385e5af7c01c421351 ;;
    *) give_up "cpu $mib: the digest of 32 or 64 MiB is known" ;;
  esac
  cpus=$(nproc)
  scratch=$(mktemp -d)
  began=${EPOCHREALTIME/./}
  for ((i = 0; i < cpus; i++)); do
    digest "$i" "$mib" >"$scratch/$i" &
  done
  wait
  us=$((${EPOCHREALTIME/./} - began))
  for ((i = 0; i < cpus; i++)); do
    got=$(<"$scratch/$i")
    [[ -n $got ]] || give_up "no digest of CPU $i"
    if [[ $got != "$want" ]]; then
      echo "CPU $i computed the digest $got and not $want"
      wrong=$((wrong + 1))
    fi
  done
  echo "cpuCount=$cpus"
  echo "cpuErrors=$wrong"
  awk -v b=$((cpus * (mib << 20))) -v us="$us" 'BEGIN { printf "cpuSha256MBs=%.1f\n", b / us }'
}

disk() {
  need dd cmp df mktemp
  local mib=$1 dir=${ASSAY_RESULTS_DIR:-$PWD} free began us wrong=0
  free=$(df -Pm "$dir" | awk 'NR == 2 { print $4 }')
  if ((free < 3 * mib)); then
    echo "DISK_SKIP $free MiB are free in $dir, and $((3 * mib)) are needed"
    exit 2
  fi
  scratch=$(mktemp -d "$dir/disk.XXXXXX")
  dd if=/dev/urandom of="$scratch/source" bs=1M count="$mib" status=none || give_up "the data could not be made"
  began=${EPOCHREALTIME/./}
  dd if="$scratch/source" of="$scratch/copy" bs=1M conv=fsync status=none || give_up "the data could not be written"
  us=$((${EPOCHREALTIME/./} - began))
  dd if="$scratch/copy" iflag=nocache count=0 status=none || true # read it from the disk, where that can be asked for
  cmp "$scratch/source" "$scratch/copy" || wrong=1
  echo "diskErrors=$wrong"
  awk -v b=$((mib << 20)) -v us="$us" 'BEGIN { printf "diskWriteMBs=%.1f\n", b / us }'
}

case ${1:-} in
  probe | cpu | disk) "$@" ;;
  *) give_up "usage: run.sh probe NAME ERRORS OPTION… | cpu MIB | disk MIB" ;;
esac
