#!/usr/bin/env bash
# Every known mistake in the programs of forward, backward and the KV cache, in real GPU kernels: each must turn its case red,
# and the same kernels without a mistake must leave it green.
#
#   gpu_faults.sh build FMHA OUT [ARCH [FAULT…]]   compiles the faulty kernels into OUT (default sm_90, all faults)
#   gpu_faults.sh run   FMHA OUT [ARCH [FAULT…]]   runs them on this machine's GPU; exit code 1 when one is not noticed
#   gpu_faults.sh both  FMHA OUT [ARCH [FAULT…]]   one after the other
#
# FMHA is the command, FAULTS the list of mistakes and cases: faults.txt (forward, the default), faults_backward.txt,
# faults_kv.txt or faults_ws.txt (warp groups of sm_90) beside this file. Faulty kernels are the planned ones, generated as always but from headers in which the
# export macro means the faulty program; nothing of what users build knows about it. They are compiled once a case, and
# choose_fault.py says in the code object which mistake they make. Building needs no GPU, running no compiler. JOBS are built, or
# run, at a time (default: one a processor; one). A line of the list is a mistake and a case.
set -euo pipefail

usage() {
    sed -n '2,15s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
[[ $# -ge 3 && ( $1 == build || $1 == run || $1 == both ) ]] || usage
phase=$1
fmha=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
arch=${4:-sm_90}
shift $(( $# < 4 ? $# : 4 ))
wanted=" $* "
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
faults=$(realpath "${FAULTS:-$here/faults.txt}")
cd "$project"

# The kernels that are planned for a case, as a filter of `fmha build`. Asked once a case.
declare -A planned=()
plan() {
    local case=$1
    [[ -z ${planned[$case]:-} ]] || return 0
    "$fmha" verify "$case" --target host --arch "$arch" --jobs 0 --json "$out/planned.json" >/dev/null
    planned[$case]=$(grep -o '"kernel": *"[^"][^"]*"' "$out/planned.json" | sed -n 1p | # the kernel filter of the run is empty
        sed "s/.*: *\"\(.*\)\"/c.name in ('\1',)/; s/ + /', '/g")
}

# Headers whose kernels make mistakes.
write_faulty_headers() {
    local root=$1 macro=$2
    rm -rf "$root"
    mkdir -p "$root"
    find dispatcher/types kernels/programs kernels/targets -name '*.hpp' -exec cp --parents -t "$root" {} +
    cat >>"$root/kernels/targets/hip/entry.hpp" <<END

#include "kernels/targets/hip/faults.hpp"
#undef FMHA_KERNEL
#define FMHA_KERNEL(symbol, Kernel) $macro(symbol, Kernel)
END
}

# Of the kernels of a case.
folder_of() {
    local case=$1 file=${1%%[[@]*}
    printf '%s\n' "$out/${file//\//_}-$(cksum <<<"$case" | cut -d ' ' -f 1)"
}

build_one() {
    local case=$1 folder macro family=${1%%/*}
    folder=$(folder_of "$case")
    case $case in
    bwd/*) macro=FMHA_FAULTY_BACKWARD_KERNEL ;;
    splitkv/combine*) macro=FMHA_FAULTY_COMBINE_KERNEL ;;
    splitkv/* | pagedkv/*) macro=FMHA_FAULTY_CACHE_KERNEL ;;
    appendkv/*) macro=FMHA_FAULTY_APPEND_KERNEL ;;
    batch_prefill/*) macro=FMHA_FAULTY_PREFILL_KERNEL ;;
    *) macro=FMHA_FAULTY_KERNEL family=fwd ;;
    esac
    [[ $faults != *faults_ws.txt ]] || macro=FMHA_FAULTY_TEAM_KERNEL
    mkdir -p "$folder"
    write_faulty_headers "$folder/headers" "$macro"
    "$fmha" build --arch "$arch" --family "$family" --where "${planned[$case]}" \
        --root "$folder/headers" --out "$folder/kernels" --replace --jobs 1 --keep-held-up </dev/null >"$folder/build.txt" 2>&1 ||
        { printf '%s NOT BUILT, see %s\n' "$case" "$folder/build.txt"; return 1; }
    printf 'built %s\n' "$case"
}

# Runs a case with a mistake, or none; the outcome is the exit code of `fmha verify`.
verify_with() {
    local fault=$1 case=$2 folder=$3 code=0
    "$here/choose_fault.py" "$folder/kernels" "$folder/$fault" "$fault" >"$folder/$fault.txt" 2>&1 || return 3
    "$fmha" verify "$case" --target hip --arch "$arch" --kernels-dir "$folder/$fault" --json "$folder/$fault.json" \
        </dev/null >>"$folder/$fault.txt" 2>&1 || code=$?
    rm -r "${folder:?}/$fault"
    return $code
}

run_one() {
    local fault=$1 case=$2 folder code=0
    folder=$(folder_of "$case")
    verify_with "$fault" "$case" "$folder" || code=$?
    if [[ $code == 1 ]] && grep -q '"outcome": *"\(failed\|mistrusted\)"' "$folder/$fault.json"; then
        printf '%-26s caught by %s\n' "$fault" "$case"
    else
        printf '%-26s NOT NOTICED by %s (exit code %d), see %s\n' "$fault" "$case" "$code" "$folder/$fault.txt"
        return 1
    fi
}

# What notices a mistake must be the mistake.
run_without() {
    local case=$1 folder
    folder=$(folder_of "$case")
    if verify_with none "$case" "$folder"; then
        printf '%-26s green %s\n' none "$case"
    else
        printf '%-26s NOT GREEN %s, see %s\n' none "$case" "$folder/none.txt"
        return 1
    fi
}

bad=0
# Starts a job when fewer than $1 are at work.
start() {
    while (( $(jobs -rp | wc -l) >= $1 )); do wait -n || bad=1; done
    "${@:2}" &
}
end_jobs() {
    while (( $(jobs -p | wc -l) > 0 )); do wait -n || bad=1; jobs >/dev/null; done
}

chosen=()
while read -r fault case; do
    [[ $wanted == "  " || $wanted == *" $fault "* ]] || continue
    chosen+=("$fault $case")
done <"$faults"
[[ ${#chosen[@]} -gt 0 ]] || { echo "none of$wanted stands in $faults" >&2; exit 2; }

mapfile -t cases < <(printf '%s\n' "${chosen[@]}" | cut -d ' ' -f 2 | sort -u)

if [[ $phase != run ]]; then
    for case in "${cases[@]}"; do
        plan "$case"
        start "${JOBS:-$(nproc)}" build_one "$case"
    done
    end_jobs
fi
if [[ $phase != build ]]; then
    for case in "${cases[@]}"; do start "${JOBS:-1}" run_without "$case"; done
    for line in "${chosen[@]}"; do
        read -r fault case <<<"$line"
        start "${JOBS:-1}" run_one "$fault" "$case"
    done
    end_jobs
    echo "${#chosen[@]} mistakes in the kernels of ${#cases[@]} cases, $([[ $bad == 0 ]] && echo all || echo NOT all) noticed"
fi
[[ $bad == 0 ]]
