#!/usr/bin/env bash
# markers_red.sh SCRATCH: markers.sh names the line that a merge left behind.
set -euo pipefail
scratch=$1
rm -rf "$scratch"
mkdir -p "$scratch/parity"
printf 'fact\n%s ours\n' '<<<<<<<' >"$scratch/parity/facts.json"
code=0
report=$("$(dirname "$0")/markers.sh" "$scratch" 2>&1) || code=$?
if ((code != 1)) || [[ $report != *parity/facts.json:2:* ]]; then
  echo "expected code 1 and parity/facts.json:2, got $code: $report" >&2
  exit 1
fi
printf 'fact\n' >"$scratch/parity/facts.json"
"$(dirname "$0")/markers.sh" "$scratch" >/dev/null
rm -rf "$scratch"
