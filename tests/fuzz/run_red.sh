#!/usr/bin/env bash
# run_red.sh: run.sh is red for a fuzzer with a finding, for one that says nothing, and for one that is not there; it runs the others all the same.
# With too few words it says which ones it takes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
fuzzer() { printf '#!/bin/sh\n%s\n' "$2" >"$scratch/bin/fuzz_$1" && chmod +x "$scratch/bin/fuzz_$1"; }
fuzzer json 'echo "finding: half a case" >&2; echo "stat::number_of_executed_units: 7" >&2; exit 77'
fuzzer names 'echo "stat::number_of_executed_units: 40" >&2'
fuzzer npy 'exit 0'
code=0
said=$("$here/run.sh" "$scratch/bin" "$scratch/work" 1 json names npy yaml) || code=$?
for words in "json: ended with 77; finding: half a case" "names              40 inputs" "npy: ended with 0" "yaml: ended with 127" "47 inputs in all: RED"; do
  [[ $said == *"$words"* ]] || { echo "\"$words\" is not said: $said" >&2; exit 1; }
done
((code == 1)) || { echo "ended with $code" >&2; exit 1; }
"$here/run.sh" "$scratch/bin" "$scratch/work" 1 names | grep '40 inputs in all: GREEN' >/dev/null
code=0
said=$("$here/run.sh" "$scratch/bin" "$scratch/work" 2>&1) || code=$?
((code == 2)) && [[ $said == "usage: run.sh BIN_FOLDER WORK_FOLDER SECONDS "* ]] || { echo "ended with $code: $said" >&2; exit 1; }
