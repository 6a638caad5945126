#!/usr/bin/env bash
# kills_red.sh CASES_ROOT FMHA KILLS…: a command that leaves half a report behind is noticed.
set -euo pipefail
cases=$1 fmha=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/fmha" <<EOF
#!/bin/sh
"$fmha" "\$@"
code=\$?
if [ -f run.json ]; then head -c 300 run.json >half && mv half run.json; fi
exit \$code
EOF
chmod +x "$scratch/fmha"
code=0
report=$(TMPDIR=$scratch "$@" "$scratch/fmha" "$cases" 1 verify) || code=$?
if ((code != 1)) || [[ $report != *"run.json: half a report"* ]]; then
  echo "expected code 1 and half a report, got $code: $report" >&2
  exit 1
fi
