#!/bin/bash
# Splits one run over the jobs of a Slurm array, and merges the parts when all are done.
#
#   sbatch --array=1-8 examples/slurm_array.sh echomind --data data/echomind --model 'worker:my_model.py' --out runs/mine
#
# The arguments are those of `overtone run`. Each job asks its own part and stores it in runs/mine-shard-I-of-N. If a job
# dies, submit the same array again: parts that are done take seconds.
#SBATCH --job-name=overtone
#SBATCH --cpus-per-task=4
#SBATCH --gpus=1
#SBATCH --time=04:00:00
#SBATCH --output=overtone-%A-%a.log
set -euo pipefail

overtone run "$@" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --quiet

# When all jobs are done, on any machine:  overtone merge runs/mine-shard-*
