#!/usr/bin/env bash
# parallel.sh HOSTS SHARDS FOLDER [ARGUMENTS of fmha verify]: GNU parallel runs the shards on HOSTS, over ssh, one at a time on each, and
# their reports are merged here. HOSTS is what `parallel --sshlogin` takes: "gpu1,gpu2", and ":" for this machine. FMHA names the command
# on every host (default: fmha). A shard whose host is lost is tried on another one, three times. Ends with the exit code of the merge.
set -euo pipefail
(($# >= 3)) || { echo "usage: parallel.sh HOSTS SHARDS FOLDER [ARGUMENTS of fmha verify]" >&2; exit 2; }
hosts=$1 shards=$2 folder=$(realpath -m "$3") fmha=${FMHA:-fmha}
command -v parallel >/dev/null || { echo "parallel.sh: GNU parallel is not installed" >&2; exit 2; }
mkdir -p "$folder"
# A red shard (exit code 1) is an answer, and no reason to try again.
parallel --sshlogin "$hosts" --jobs 1 --retries 3 --joblog "$folder/jobs.log" --results "$folder/shard-{}.report" \
  "$(printf '%q ' "$fmha" verify "${@:4}" --format json) --shard {}/$shards || [ \$? -eq 1 ]" \
  ::: $(seq "$shards") >/dev/null || echo "parallel.sh: some shards gave no report, $folder/jobs.log says which" >&2
exec "$fmha" merge "$folder"/shard-*.report --junit "$folder/run.xml" --html "$folder/run.html" --json "$folder/run.json"
