#!/usr/bin/env bash
# run.sh BIN_FOLDER WORK_FOLDER SECONDS [NAME…]: runs the fuzzers of these names (all) for SECONDS each, one after the other, and prints how many
# inputs each had. New inputs stay in WORK_FOLDER/corpus; a finding stays in WORK_FOLDER/findings and makes the code 1.
set -euo pipefail
(($# >= 3)) || { echo "usage: run.sh BIN_FOLDER WORK_FOLDER SECONDS [NAME…]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
bin=$1 work=$2 seconds=$3
names=("${@:4}")
((${#names[@]})) || names=(json names npy yaml filters c)
status=0 total=0
for name in "${names[@]}"; do
  corpus=$work/corpus/$name log=$work/$name.log
  mkdir -p "$corpus" "$work/findings"
  words=(-max_total_time="$seconds" -max_len=4096 -timeout=20 -artifact_prefix="$work/findings/$name-" -print_final_stats=1 -verbosity=0)
  [[ ! -f $here/dictionaries/$name.dict ]] || words+=(-dict="$here/dictionaries/$name.dict")
  code=0
  "$bin/fuzz_$name" "${words[@]}" "$corpus" "$here/seeds/$name" >"$log" 2>&1 || code=$?
  inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  total=$((total + ${inputs:-0}))
  printf '%-8s %12s inputs\n' "$name" "${inputs:-no}"
  if ((code != 0)) || [[ -z $inputs ]]; then
    status=1
    echo "$name: ended with $code; $(grep -m 1 -E '^finding:|SUMMARY:|ERROR:|terminate' "$log" || tail -n 1 "$log")"
    grep -m 1 'Test unit written' "$log" || true
  fi
done
echo "$total inputs in all: $( ((status)) && echo RED || echo GREEN)"
exit "$status"
