#!/usr/bin/env bash
# markers.sh ROOT: no text file under ROOT has the markers that a merge leaves behind, "<<<<<<< " and ">>>>>>> " at the beginning of a
# line. Exit codes: 0 none has, 1 some have (file and line), 2 ROOT holds no files.
set -euo pipefail
cd "$1"
if git rev-parse --is-inside-work-tree >/dev/null 2>&1 && [[ -n $(git ls-files | sed -n 1p) ]]; then
  mapfile -d '' files < <(git ls-files -z)
else
  mapfile -d '' files < <(find . -path ./build -prune -o -type f -print0)
fi
((${#files[@]})) || { echo "no files under $1" >&2; exit 2; }
found=0
printf '%s\0' "${files[@]}" | xargs -0 grep -HInsE '^(<{7}|>{7})( |$)' -- || found=$?
((found == 0)) && { echo "these lines are left from a merge" >&2; exit 1; }
echo "${#files[@]} files without markers of a merge"
