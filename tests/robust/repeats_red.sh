#!/usr/bin/env bash
# repeats_red.sh PYTHON FOLDER FMHA CASES_ROOT: repeats.py notices one bit that comes and goes and a case that is lost, reruns.py a gate that is red; without
# them both are green. A sum by atomics may come out otherwise, nothing else may.
set -euo pipefail
python=$1 here=$2 fmha=$3 cases=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A wrapper of fmha that does $1 after each command but the first.
wrapper() {
  rm -f "$scratch/once"
  cat >"$scratch/fmha" <<EOF
#!/usr/bin/env bash
code=0
"$fmha" "\$@" || code=\$?
for word; do [[ \$word == *.json ]] && report=\$word; done
if [[ -n \${report:-} && -e $scratch/once ]]; then $1; fi
[[ -z \${report:-} ]] || touch $scratch/once
$2
exit \$code
EOF
  chmod +x "$scratch/fmha"
}
expect() {
  local code=0 said
  said=$("$python" "${@:3}" 2>&1) || code=$?
  if ((code != $1)) || [[ $said != *"$2"* ]]; then
    echo "expected code $1 and \"$2\", got $code: $said" >&2
    exit 1
  fi
}
repeats=("$here/repeats.py" "$scratch/fmha" "$cases" 2 2 fwd/tiny fwd/sink_tokens)
# The seventh digit of a gate's number is what one other bit of the output changes.
wrapper "sed -i '0,/\"ratio\": 0\\.[0-9]*[1-9]/s//\"ratio\": 0.1234567/' \"\$report\"" ""
expect 1 "2 results differed" "${repeats[@]}"
wrapper "sed -i 's/\"name\": \"fwd.tiny/\"name\": \"fwd-tiny/' \"\$report\"" ""
expect 1 "once  []" "${repeats[@]}"
wrapper ":" ""
expect 0 "0 results differed" "${repeats[@]}"
# Another number of each gate of a tensor.
other="import json, sys; r = json.load(open(sys.argv[2])); [g.update(ratio=0.1234567) for c in r['results'] for g in c['gates'] if g['tensor'] == sys.argv[1]]; json.dump(r, open(sys.argv[2], 'w'))"
for sums in "dq scales 0" "dk scales 2" "dq deterministic 2"; do
  read -r tensor file differ <<<"$sums"
  wrapper "'$python' -c \"$other\" $tensor \"\$report\"" ""
  expect $((differ > 0)) "$differ results differed" "$here/repeats.py" "$scratch/fmha" "$cases" 2 2 "bwd/$file"
done
reruns=("$here/reruns.py" "$scratch/fmha" "$cases" 1)
expect 0 "0 alarms" "${reruns[@]}"
# A gate that is red, whatever was measured for it.
printf '#!/bin/sh\necho "$1"\n[ "$1" != gate ]\n' >"$scratch/fmha"
expect 1 "1 alarms" "${reruns[@]}"
