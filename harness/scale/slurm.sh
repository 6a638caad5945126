#!/usr/bin/env bash
# slurm.sh SHARDS FOLDER [ARGUMENTS of fmha verify]: a Slurm array with a task for each shard, then a job that merges them. It waits, prints
# the merged verdict and ends with its exit code. FMHA names the command (default: fmha), SBATCH_FLAGS more options for sbatch
# (--partition, --gres=gpu:1). FOLDER must be seen by all nodes. A task that Slurm starts again continues its journal, and so does the
# whole script when it is started again with the same arguments.
set -euo pipefail
(($# >= 2)) || { echo "usage: slurm.sh SHARDS FOLDER [ARGUMENTS of fmha verify]" >&2; exit 2; }
shards=$1 folder=$(realpath -m "$2")
fmha=$(command -v "${FMHA:-fmha}") || { echo "slurm.sh: ${FMHA:-fmha}: there is no such command; FMHA=PATH names it" >&2; exit 2; }
mkdir -p "$folder"
task=${SLURM_ARRAY_TASK_ID:-}
if [[ -n $task ]]; then
  exec "$fmha" verify "${@:3}" --shard "$task/$shards" --journal "$folder/shard-$task.jsonl" --json "$folder/shard-$task.json"
fi
read -ra flags <<<"${SBATCH_FLAGS:-}"
array=$(FMHA=$fmha sbatch --parsable "${flags[@]}" --job-name=fmha --requeue --array="1-$shards" \
  --output="$folder/shard-%a.log" "$(realpath "$0")" "$shards" "$folder" "${@:3}")
status=0
sbatch --wait "${flags[@]}" --job-name=fmha-merge --dependency="afterany:${array%%;*}" --output="$folder/merge.log" \
  --wrap "$(printf '%q ' "$fmha" merge) $(printf '%q' "$folder")/shard-*.jsonl $(printf '%q ' --junit "$folder/run.xml" \
    --html "$folder/run.html" --json "$folder/run.json")" >/dev/null || status=$?
cat "$folder/merge.log"
exit "$status"
