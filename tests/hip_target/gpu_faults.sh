#!/usr/bin/env bash
# Every known mistake in the forward program, built into real GPU kernels: each must turn its case of faults.txt red.
#
#   gpu_faults.sh build FMHA OUT [ARCH [FAULT…]]   compiles the faulty kernels into OUT (default sm_90, all faults)
#   gpu_faults.sh run   FMHA OUT [ARCH [FAULT…]]   runs them on this machine's GPU; exit code 1 when one is not noticed
#
# FMHA is the command. A faulty kernel is the planned one, generated as always but from headers in which the export
# macro means the faulty program; nothing of what users build knows about it. Building needs no GPU, running no compiler.
set -euo pipefail

usage() {
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
[[ $# -ge 3 && ( $1 == build || $1 == run ) ]] || usage
phase=$1
fmha=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
arch=${4:-sm_90}
shift $(( $# < 4 ? $# : 4 ))
wanted=" $* "
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
cd "$project"

# The kernel that is planned for a case.
planned_kernel() {
    "$fmha" verify "$1" --target host --arch "$arch" --jobs 0 --json "$out/planned.json" >/dev/null
    grep -o '"kernel": *"[^"]*"' "$out/planned.json" | head -n 1 | sed 's/.*: *"\(.*\)"/\1/'
}

# Headers whose kernels make one mistake.
write_faulty_headers() {
    local root=$1 fault=$2
    rm -rf "$root"
    mkdir -p "$root"
    find dispatcher/types kernels/programs kernels/targets -name '*.hpp' -exec cp --parents -t "$root" {} +
    cat >>"$root/kernels/targets/hip/entry.hpp" <<END

#include "kernels/targets/hip/faults.hpp"
#undef FMHA_KERNEL
#define FMHA_KERNEL(symbol, Kernel) FMHA_FAULTY_KERNEL(symbol, Kernel, $fault)
END
}

missed=0
while read -r fault case; do
    [[ $wanted == "  " || $wanted == *" $fault "* ]] || continue
    folder=$out/$fault
    if [[ $phase == build ]]; then
        write_faulty_headers "$folder/headers" "$fault"
        "$fmha" build --arch "$arch" --kernel "$(planned_kernel "$case")" --root "$folder/headers" \
            --out "$folder/kernels" </dev/null >/dev/null
        printf '%-26s built\n' "$fault"
        continue
    fi
    code=0
    "$fmha" verify "$case" --target hip --arch "$arch" --kernels-dir "$folder/kernels" --json "$folder/result.json" \
        </dev/null >"$folder/output.txt" 2>&1 || code=$?
    if [[ $code == 1 ]] && grep -q '"outcome": *"\(failed\|mistrusted\)"' "$folder/result.json"; then
        printf '%-26s caught by %s\n' "$fault" "$case"
    else
        missed=$((missed + 1))
        printf '%-26s NOT NOTICED by %s (exit code %d), see %s\n' "$fault" "$case" "$code" "$folder/output.txt"
    fi
done <"$here/faults.txt"
[[ $missed == 0 ]]
