#!/usr/bin/env bash
# format_red.sh ROOT SCRATCH [CLANG_FORMAT]: format.sh names a badly formatted file and refuses a tree without sources.
set -euo pipefail
root=$1 scratch=$2 tool=${3:-}
check=$(dirname "$0")/format.sh

rm -rf "$scratch"
mkdir -p "$scratch/kernels"
cp "$root/.clang-format" "$scratch"
code=0
"$check" "$scratch" "$tool" || code=$?
((code == 77)) && exit 77
((code == 2)) || { echo "a tree without sources gave $code, not 2" >&2; exit 1; }

printf 'int  good( );\n' >"$scratch/kernels/badly.hpp"
code=0
report=$("$check" "$scratch" "$tool" 2>&1) || code=$?
if ((code != 1)) || [[ $report != *kernels/badly.hpp:1:* ]]; then
  echo "expected code 1 and kernels/badly.hpp, got $code: $report" >&2
  exit 1
fi
rm -rf "$scratch"
