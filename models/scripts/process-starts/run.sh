#!/usr/bin/env bash
# Starts COUNT programs one after the other (default 1000) and prints the rate.
set -euo pipefail
export LC_ALL=C # a decimal point in EPOCHREALTIME

count=${1:-1000}
program=$(type -P true)
began=${EPOCHREALTIME/./}
for ((i = 0; i < count; i++)); do "$program"; done
us=$((${EPOCHREALTIME/./} - began))
echo "$count starts of $program in $us us"
echo "performance: $((count * 1000000 / us)) processStartsPerSecond"
