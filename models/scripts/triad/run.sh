#!/usr/bin/env bash
# Memory bandwidth as STREAM defines its triad. Arguments go to the probe.
set -euo pipefail
exec "${ASSAY_BIN:?names the assay binary; assay sets it for every rank}" probe triad "$@"
