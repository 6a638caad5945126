#!/usr/bin/env bash
# pipes.sh ROOT: no shell script under ROOT has a reader that stops before its pipe ends (head, grep -q). Under pipefail the writer
# then dies of SIGPIPE now and then, and the script fails without a word; "sed -n 1p" and "grep X >/dev/null" read to the end.
# Exit codes: 0 none has, 1 some have (file and line), 2 ROOT holds no scripts.
set -euo pipefail
cd "$1"
mapfile -d '' scripts < <(find . \( -path ./build -o -path ./.git -o -path ./.dev \) -prune -o -type f -exec grep -lZIE '^#!.*[/ ](ba)?sh( |$)' {} +)
((${#scripts[@]})) || { echo "no shell scripts under $1" >&2; exit 2; }
found=0
printf '%s\0' "${scripts[@]}" | xargs -0 grep -HnE '\| *(head|grep +-[a-zA-Z]*q)( |$)' -- || found=$?
((found == 0)) && { echo "these readers stop before their pipes end" >&2; exit 1; }
echo "${#scripts[@]} scripts, each of whose pipes is read to its end"
