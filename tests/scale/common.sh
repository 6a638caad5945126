# Sourced by the tests of harness/scale. Arguments: FMHA, the root of the sources.
set -euo pipefail
fmha=$1 root=$2
work=$(mktemp -d)
cleanup=()
finish() {
  local status=$?
  for ((i = ${#cleanup[@]} - 1; i >= 0; i--)); do eval "${cleanup[i]}" || true; done
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT
skip() {
  echo "skipped: $*"
  exit 77
}
need() {
  for tool in "$@"; do command -v "$tool" >/dev/null || PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || skip "$tool is not installed"; done
  PATH=$PATH:/usr/sbin
}
fail() {
  echo "FAILED: $*"
  exit 1
}
export FMHA=$fmha
arguments=(fwd/tiny --cases-root "$root/cases" --jobs 1)

# same_as_whole FOLDER: the merged report has every case of a run in one process, with the same outcome.
same_as_whole() {
  "$fmha" verify "${arguments[@]}" --json "$work/whole.json" >/dev/null
  for file in "$work/whole.json" "$1/run.json"; do
    python3 -c 'import json, sys
for r in sorted((r["name"], r["outcome"], r["kernel"]) for r in json.load(open(sys.argv[1]))["results"]): print(*r)' "$file" >"$file.list"
  done
  [[ -s $work/whole.json.list ]] || fail "the whole run has no case"
  cmp "$work/whole.json.list" "$1/run.json.list" || fail "the merged run is another one"
}
