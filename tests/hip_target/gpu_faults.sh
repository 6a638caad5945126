#!/usr/bin/env bash
# Every known mistake in the programs of forward, backward and the KV cache, built into real GPU kernels: each must turn its
# case red.
#
#   gpu_faults.sh build FMHA OUT [ARCH [FAULT…]]   compiles the faulty kernels into OUT (default sm_90, all faults)
#   gpu_faults.sh run   FMHA OUT [ARCH [FAULT…]]   runs them on this machine's GPU; exit code 1 when one is not noticed
#   gpu_faults.sh both  FMHA OUT [ARCH [FAULT…]]   one after the other
#
# FMHA is the command, FAULTS the list of mistakes and cases: faults.txt (forward, the default), faults_backward.txt or
# faults_kv.txt beside this file. Faulty kernels are the planned ones, generated as always but from headers in which the
# export macro means the faulty program; nothing of what users build knows about it. Building needs no GPU, running no
# compiler. As many mistakes are built at a time as there are processors. A line of the list is a mistake, a case, and where
# a case has several stages the stage that makes it: the others are built once, as they are.
set -euo pipefail

usage() {
    sed -n '2,14s/^# \{0,1\}//p' "$0" >&2
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
    planned[$case]=$(grep -o '"kernel": *"[^"][^"]*"' "$out/planned.json" | head -n 1 | # the kernel filter of the run is empty
        sed "s/.*: *\"\(.*\)\"/c.name in ('\1',)/; s/ + /', '/g")
}

# The kernels of all stages without a mistake, of the cases whose mistakes are in one stage.
build_right() {
    local filter= case
    for case in "$@"; do filter+="${filter:+ or }${planned[$case]}"; done
    "$fmha" build --arch "$arch" --family bwd --where "$filter" --out "$out/right" </dev/null >"$out/right.txt" 2>&1 ||
        { echo "the kernels without a mistake are NOT BUILT, see $out/right.txt"; return 1; }
}

# Adds the stages that a folder of one faulty stage lacks.
add_right() {
    python3 - "$out/right" "$1" <<'END'
import json, pathlib, shutil, sys
right, faulty = map(pathlib.Path, sys.argv[1:])
manifest = json.loads((faulty / "manifest.json").read_text())
made = {kernel["name"] for unit in manifest["objects"] for kernel in unit["kernels"]}
for unit in json.loads((right / "manifest.json").read_text())["objects"]:
    if not made & {kernel["name"] for kernel in unit["kernels"]}:
        shutil.copy(right / unit["file"], faulty / unit["file"])
        manifest["objects"].append(unit)
(faulty / "manifest.json").write_text(json.dumps(manifest))
END
}

# Headers whose kernels make one mistake.
write_faulty_headers() {
    local root=$1 fault=$2 macro=$3
    rm -rf "$root"
    mkdir -p "$root"
    find dispatcher/types kernels/programs kernels/targets -name '*.hpp' -exec cp --parents -t "$root" {} +
    cat >>"$root/kernels/targets/hip/entry.hpp" <<END

#include "kernels/targets/hip/faults.hpp"
#undef FMHA_KERNEL
#define FMHA_KERNEL(symbol, Kernel) $macro(symbol, Kernel, $fault)
END
}

# Mistakes of two programs may have one name.
folder_of() {
    local fault=$1 case=$2 file=${2%%[[@]*}
    printf '%s\n' "$out/${file//\//_}-$fault"
}

build_one() {
    local fault=$1 case=$2 stage=$3 folder macro family=${2%%/*}
    folder=$(folder_of "$fault" "$case")
    case $case in
    bwd/*) macro=FMHA_FAULTY_BACKWARD_KERNEL ;;
    splitkv/combine*) macro=FMHA_FAULTY_COMBINE_KERNEL ;;
    splitkv/* | pagedkv/*) macro=FMHA_FAULTY_CACHE_KERNEL ;;
    appendkv/*) macro=FMHA_FAULTY_APPEND_KERNEL ;;
    batch_prefill/*) macro=FMHA_FAULTY_PREFILL_KERNEL ;;
    *) macro=FMHA_FAULTY_KERNEL family=fwd ;;
    esac
    mkdir -p "$folder"
    write_faulty_headers "$folder/headers" "$fault" "$macro"
    "$fmha" build --arch "$arch" --family "$family" --where "${planned[$case]}" \
        ${stage:+--where "c.family == '$stage'"} --root "$folder/headers" --out "$folder/kernels" --jobs 1 </dev/null >"$folder/build.txt" 2>&1 ||
        { printf '%-26s NOT BUILT, see %s\n' "$fault" "$folder/build.txt"; return 1; }
    printf '%-26s built\n' "$fault"
}

run_one() {
    local fault=$1 case=$2 folder code=0
    folder=$(folder_of "$fault" "$case")
    "$fmha" verify "$case" --target hip --arch "$arch" --kernels-dir "$folder/kernels" --json "$folder/result.json" \
        </dev/null >"$folder/output.txt" 2>&1 || code=$?
    if [[ $code == 1 ]] && grep -q '"outcome": *"\(failed\|mistrusted\)"' "$folder/result.json"; then
        printf '%-26s caught by %s\n' "$fault" "$case"
    else
        printf '%-26s NOT NOTICED by %s (exit code %d), see %s\n' "$fault" "$case" "$code" "$folder/output.txt"
        return 1
    fi
}

chosen=()
while read -r fault case stage; do
    [[ $wanted == "  " || $wanted == *" $fault "* ]] || continue
    chosen+=("$fault $case $stage")
done <"$faults"
[[ ${#chosen[@]} -gt 0 ]] || { echo "none of$wanted stands in $faults" >&2; exit 2; }

bad=0
if [[ $phase != run ]]; then
    declare -A shared=()
    for line in "${chosen[@]}"; do
        read -r fault case stage <<<"$line"
        plan "$case"
        [[ -z $stage ]] || shared[$case]=1
    done
    [[ ${#shared[@]} == 0 ]] || build_right "${!shared[@]}" &
    for line in "${chosen[@]}"; do
        while (( $(jobs -rp | wc -l) >= $(nproc) )); do wait -n || bad=1; done
        read -r fault case stage <<<"$line"
        build_one "$fault" "$case" "$stage" &
    done
    while (( $(jobs -p | wc -l) > 0 )); do wait -n || bad=1; jobs >/dev/null; done
    for line in "${chosen[@]}"; do
        read -r fault case stage <<<"$line"
        [[ -z $stage || ! -f $out/right/manifest.json || ! -f $(folder_of "$fault" "$case")/kernels/manifest.json ]] ||
            add_right "$(folder_of "$fault" "$case")/kernels"
    done
fi
if [[ $phase != build ]]; then
    for line in "${chosen[@]}"; do
        read -r fault case _ <<<"$line"
        run_one "$fault" "$case" || bad=1
    done
    echo "${#chosen[@]} mistakes, $([[ $bad == 0 ]] && echo all || echo NOT all) noticed"
fi
[[ $bad == 0 ]]
