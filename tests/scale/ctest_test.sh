#!/usr/bin/env bash
# harness/scale/ctest.sh: four shards on two devices; CTest gives both devices away, and no more.
source "$(dirname "$0")/common.sh"
need ctest python3
"$root/harness/scale/ctest.sh" 2 4 "$work/run" "${arguments[@]}" || fail "exit code $?"
same_as_whole "$work/run"
devices=$(grep -h "on device" "$work/run/Testing/Temporary/LastTest.log" | sort -u | wc -l)
[[ $devices == 4 ]] || fail "four shards should say their devices: $(cat "$work/run/ctest.log")"
used=$(grep -ho "on device [01]$" "$work/run/Testing/Temporary/LastTest.log" | sort -u | wc -l)
[[ $used == 2 ]] || fail "two devices should be in use"
status=0
"$root/harness/scale/ctest.sh" none 4 "$work/other" || status=$?
[[ $status == 2 ]] || fail "bad devices should be exit code 2, not $status"
