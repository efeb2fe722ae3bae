#!/usr/bin/env bash
# One rank of a ring all-reduce over TCP. The ranks meet by MASTER_ADDR,
# MASTER_PORT, RANK and WORLD_SIZE. Arguments go to the probe.
set -euo pipefail
exec "${ASSAY_BIN:?names the assay binary; assay sets it for every rank}" probe allreduce "$@"
