#!/bin/bash
# Job bench of run 20260101-000000-abcdef, attempt 1. Written by assay.
#SBATCH --job-name=assay-001122334455-bench-1
#SBATCH --comment="assay run=20260101-000000-abcdef nonce=00112233445566778899aabbccddeeff job=bench attempt=1 host=HOST dir=/scratch/runs/20260101-000000-abcdef/jobs/bench/1"
#SBATCH --chdir=/scratch/runs/20260101-000000-abcdef/jobs/bench/1
#SBATCH --output="/scratch/my logs/assay-001122334455-bench-1-%j.out"
#SBATCH --open-mode=append
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --partition=gpu,main
#SBATCH --account=proj
#SBATCH --qos=high
#SBATCH --reservation=maint
#SBATCH --nodelist=node[1-4],gpu-[01-03]
#SBATCH --exclude=node9
#SBATCH --constraint="a100&ib|h100"
#SBATCH --gpus-per-node=8
#SBATCH --time=1-02:30:00
#SBATCH --mem=64G
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --mail-user=ada@example.org
#SBATCH --mail-type=BEGIN,END

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

srun --nodes=4 --ntasks=4 --ntasks-per-node=1 --nodelist="$nodes" --distribution=block \
	--wait=0 --kill-on-bad-exit=1 --cpu-bind=none --input=none --label --mpi=pmi2 \
	--job-name=assay-001122334455-bench-1 --export=PATH,HOME,LANG,MODULEPATH \
	"$assay" rank --job "$job" --under slurm --master-addr "$master" --master-port "$port"

# srun gives the worst exit code of the ranks; the accounting shall know it.
exit $?
