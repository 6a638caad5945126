#!/usr/bin/env bash
# interrupts_red.sh CASES_ROOT INTERRUPTS…: a command that goes on, one that is green, and one that leaves a process are noticed.
set -euo pipefail
cases=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
check() { # SENTENCE BODY
  printf '#!/bin/bash\n%s\n' "$2" >"$scratch/fmha"
  chmod +x "$scratch/fmha"
  local code=0 report
  report=$(FMHA_KILL_SEED=1 FMHA_INTERRUPT_SECONDS=1 "${interrupts[@]}" "$scratch/fmha" "$cases" 1 fuzz) || code=$?
  if ((code != 1)) || [[ $report != *"$1"* ]]; then
    echo "expected code 1 and \"$1\", got $code: $report" >&2
    exit 1
  fi
}
interrupts=("$@")
check "it went on for 1 s" "trap '' INT TERM; for i in {1..80}; do sleep 0.1; done"
check "it ended with 0" "trap 'exit 0' INT TERM; for i in {1..80}; do sleep 0.1; done"
check "it left sleep behind" "sleep 5 & trap 'exit 1' INT TERM; for i in {1..80}; do read -rt 0.1 <> <(:) || :; done"
