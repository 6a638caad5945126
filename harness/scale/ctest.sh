#!/usr/bin/env bash
# ctest.sh DEVICES SHARDS FOLDER [ARGUMENTS of fmha verify]: CTest runs the shards and shares out DEVICES GPUs among them with resource groups, so
# that one shard at a time has a GPU; then their journals are merged. DEVICES "all" asks `fmha devices`. FMHA names the command (default: fmha). Ends
# with the exit code of the merge.
set -euo pipefail
(($# >= 3)) || { echo "usage: ctest.sh DEVICES SHARDS FOLDER [ARGUMENTS of fmha verify]" >&2; exit 2; }
devices=$1 shards=$2 folder=$(realpath -m "$3")
here=$(realpath "$(dirname "$0")")
fmha=$(command -v "${FMHA:-fmha}") || { echo "ctest.sh: ${FMHA:-fmha}: there is no such command; FMHA=PATH names it" >&2; exit 2; }
if [[ $devices == all ]]; then devices=$("$fmha" devices --format json | grep -c '"compute_units"') || true; fi
if ! [[ $devices =~ ^[1-9][0-9]*$ ]]; then echo "ctest.sh: \"$1\" devices: a number, or all with at least one GPU (fmha devices)" >&2; exit 2; fi
mkdir -p "$folder"
{
  printf '{"version": {"major": 1, "minor": 0}, "local": [{"gpus": ['
  for ((device = 0; device < devices; device++)); do
    ((device == 0)) || printf ', '
    printf '{"id": "%d", "slots": 1}' "$device"
  done
  printf ']}]}\n'
} >"$folder/resources.json"
for ((shard = 1; shard <= shards; shard++)); do
  printf 'add_test([=[shard %d]=]' "$shard"
  printf ' [=[%s]=]' "$here/ctest_shard.sh" "$fmha" "$shard/$shards" "$folder/shard-$shard" "${@:4}"
  printf ')\nset_tests_properties([=[shard %d]=] PROPERTIES RESOURCE_GROUPS "gpus:1" TIMEOUT 86400)\n' "$shard"
done >"$folder/CTestTestfile.cmake"
(cd "$folder" && ctest --resource-spec-file "$folder/resources.json" --parallel "$devices" --output-on-failure >ctest.log) || true
exec "$fmha" merge "$folder"/shard-*.jsonl --junit "$folder/run.xml" --html "$folder/run.html" --json "$folder/run.json"
