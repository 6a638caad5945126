#!/usr/bin/env bash
# Determinism of backward on a busy GPU (W-16): `fmha verify` of cases whose launches must agree bit for bit, while a second process
# keeps the device busy with the attention of a large shape.
#
#   under_load.sh FMHA KERNELS [OPTION…]
#
# FMHA is the command, KERNELS the folder that `fmha build` filled with the kernels of these cases and of the load's. OPTIONs are those of
# `fmha verify`; without any, all deterministic cases of the full tier run. LOAD is the load's shape, in the language of
# `fmha bench --shape`, TARGET where kernels run (hip). Exit code: that of `fmha verify`; 3 when the load did not run all the time.
set -euo pipefail

if [[ $# -lt 2 ]]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
fmha=$(realpath "$1")
kernels=$(realpath "$2")
shift 2
[[ $# -gt 0 ]] || set -- bwd/deterministic --tier full
target=${TARGET:-hip}
places=(--target "$target")
[[ $target == host ]] || places+=(--kernels-dir "$kernels")

scratch=$(mktemp -d)
load=
finish() {
    [[ -z $load ]] || kill "$load" 2>/dev/null || true
    wait
    rm -rf "$scratch"
}
trap finish EXIT

# Each round of a second launches without a pause and appends a row to the journal.
"$fmha" bench --shape "${LOAD:-dtype=bf16,batch=8,heads=16,seqlen=4096,hdim=128,mask=t}" "${places[@]}" \
    --workers 0 --seconds 1 --rounds 1000 --journal "$scratch/rounds" >"$scratch/load" 2>&1 &
load=$!
rounds() {
    grep -c '"outcome":"measured"' "$scratch/rounds" 2>/dev/null || true
}
no_load() {
    echo "the load $1:" >&2
    tail -n 5 "$scratch/load" >&2
    exit 3
}
running() {
    kill -0 "$load" 2>/dev/null
}

until [[ $(rounds) -ge 1 ]]; do
    running || no_load "did not start"
    sleep 0.2
done
before=$(rounds)
status=0
"$fmha" verify "$@" "${places[@]}" || status=$?
running || no_load "ended early"
# The round that was under way has ended by then, so that one more tells of launches beside the cases.
until [[ $(rounds) -gt $before ]]; do
    running || no_load "ended early"
    sleep 0.2
done
echo "load: $(($(rounds) - before)) rounds of a second beside the cases"
exit "$status"
