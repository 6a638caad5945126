#!/usr/bin/env bash
# ctest_shard.sh FMHA I/N FILE ARGUMENTS…: one shard, on the GPU that CTest gave to this test.
set -euo pipefail
fmha=$1 shard=$2 file=$3
device=${CTEST_RESOURCE_GROUP_0_GPUS#id:}
device=${device%%,*}
options=()
if [[ " ${*:4} " == *" --target hip "* ]]; then options=(--device "$device"); fi
printf 'shard %s on device %s\n' "$shard" "$device"
exec "$fmha" verify "${@:4}" "${options[@]}" --shard "$shard" --journal "$file.jsonl" --json "$file.json"
