#!/usr/bin/env bash
# harness/scale/parallel.sh with GNU parallel on this machine.
source "$(dirname "$0")/common.sh"
need parallel python3
"$root/harness/scale/parallel.sh" : 3 "$work/run" "${arguments[@]}" || fail "exit code $?"
same_as_whole "$work/run"
rm "$work/run/shard-2.report"
if "$fmha" merge "$work/run"/shard-*.report >"$work/said"; then fail "a lost shard is not noticed"; fi
grep -q "RED: shard 2 of 3 is missing" "$work/said" || fail "$(cat "$work/said")"
