#!/usr/bin/env bash
# usage_test.sh: a script of harness/scale that has too few words says in one line which ones it takes, whatever tools are installed.
set -euo pipefail
scale=$(cd "$(dirname "$0")/../../harness/scale" && pwd)
while read -r script takes; do
  given=()
  for word in $takes; do # one word after the other, never all
    code=0
    said=$("$scale/$script" "${given[@]}" 2>&1 >/dev/null) || code=$?
    [[ $code == 2 && $said == "usage: $script $takes [ARGUMENTS of fmha verify]" ]] ||
      { echo "$script ${given[*]}: ended with $code: $said" >&2; exit 1; }
    given+=("$word")
  done
done <<'SCRIPTS'
slurm.sh SHARDS FOLDER
parallel.sh HOSTS SHARDS FOLDER
ctest.sh DEVICES SHARDS FOLDER
SCRIPTS
