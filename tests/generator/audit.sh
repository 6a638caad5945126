#!/usr/bin/env bash
# audit.sh FMHA OUT ARGUMENTS…: builds and audits kernels; 77 (not run) where nothing compiles for the architecture, and where nothing is
# wrong but budgets of another compiler judged nothing.
set -uo pipefail
said=$("$1" build --out "$2" --replace --audit "${@:3}" 2>&1)
status=$?
printf '%s\n' "$said"
if ((status == 2)) && [[ $said == *"no compiler for"* || $said == *"--audit: "*"has no llvm-objdump"* ]]; then
  exit 77
fi
if ((status == 1)) && [[ $said == *"no loop was judged"* ]] && ! grep -qE '^(AUDIT|FAILED) ' <<<"$said"; then
  exit 77
fi
exit "$status"
