#!/usr/bin/env bash
# format.sh ROOT [CLANG_FORMAT]: every source under the rooms of ROOT is as .clang-format says.
# Exit codes: 0 all are, 1 some are not (named), 2 ROOT holds no sources, 77 not run, with the reason.
set -euo pipefail
root=$1 tool=${2:-}

# Two releases of clang-format disagree about the same file, so only the one that formats this project judges it.
readonly release=14
if [[ -z $tool ]] || ! command -v "$tool" >/dev/null; then
  echo "NOT RUN: clang-format $release is not installed"
  exit 77
fi
version=$("$tool" --version | sed -n 1p)
if [[ ! $version =~ version\ $release\. ]]; then
  echo "NOT RUN: clang-format $release is needed, $tool is: $version"
  exit 77
fi

cd "$root"
rooms=()
for room in dispatcher kernels reference harness parity reports tests; do
  [[ -d $room ]] && rooms+=("$room")
done
sources=()
((${#rooms[@]})) && mapfile -d '' sources < <(find "${rooms[@]}" -type f -regex '.*\.\(hpp\|cpp\|h\|c\)' -print0)
if ((${#sources[@]} == 0)); then
  echo "no sources under $root" >&2
  exit 2
fi
"$tool" --dry-run -Werror --style=file "${sources[@]}" || exit 1
echo "${#sources[@]} sources are formatted"
