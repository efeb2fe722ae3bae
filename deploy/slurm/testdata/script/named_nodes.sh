#!/bin/bash
# Job bench of run 20260101-000000-abcdef, attempt 1. Written by assay.
#SBATCH --job-name=assay-001122334455-bench-1
#SBATCH --comment="assay run=20260101-000000-abcdef nonce=00112233445566778899aabbccddeeff job=bench attempt=1 host=HOST dir=/scratch/runs/20260101-000000-abcdef/jobs/bench/1"
#SBATCH --chdir=/scratch/runs/20260101-000000-abcdef/jobs/bench/1
#SBATCH --output=/scratch/runs/20260101-000000-abcdef/jobs/bench/1/job.out
#SBATCH --open-mode=append
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --partition=main
#SBATCH --nodelist=gpu[07,09,08]

set -u
umask 077

# What ranks get of the submitting environment, by name. SLURM adds its own.
unset SLURM_EXPORT_ENV SLURM_JWT
export PATH="/opt/it's here/bin:/usr/bin:/bin"
export HOME=/home/ada
export LANG=C.UTF-8
export MODULEPATH=/opt/modules

assay=/scratch/runs/.assay/assay-0123456789abcdef
job=/scratch/runs/20260101-000000-abcdef/jobs/bench/1/job.json
if [[ ! -x $assay ]]; then
	echo "assay: $assay cannot be executed on ${SLURMD_NODENAME:-$HOSTNAME}: the directory of runs must be on a filesystem that every node mounts and may execute from" >&2
	exit 6
fi

echo "assay: start ${SLURM_RESTART_COUNT:-0} of $SLURM_JOB_ID on ${SLURMD_NODENAME:-$HOSTNAME}"

# Which attempt this start of the job is, and where its ranks meet.
place=$("$assay" place --job "$job" --under slurm) || exit 6
{ read -r job; read -r master; read -r port; read -r nodes; } <<<"$place"

srun --nodes=3 --ntasks=3 --ntasks-per-node=1 --nodelist="$nodes" --distribution=block \
	--wait=0 --kill-on-bad-exit=0 --cpu-bind=none --input=none --label \
	--job-name=assay-001122334455-bench-1 --export=PATH,HOME,LANG,MODULEPATH \
	"$assay" rank --job "$job" --under slurm --master-addr "$master" --master-port "$port"

# srun gives the worst exit code of the ranks; the accounting shall know it.
exit $?
