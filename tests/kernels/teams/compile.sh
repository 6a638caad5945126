#!/usr/bin/env bash
# compile.sh SOURCE_FOLDER KERNELS OPTIONS…: compiles the kernels of team_kernel.hip, so many; 77 (not run) without nvcc.
set -uo pipefail
nvcc=$(command -v nvcc || ls -d /usr/local/cuda*/bin/nvcc 2>/dev/null | sed -n 1p)
[[ -n $nvcc ]] || { echo "no nvcc on the PATH or under /usr/local/cuda*"; exit 77; }
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
said=$("$nvcc" -x cu -std=c++20 -O3 --expt-relaxed-constexpr -gencode=arch=compute_90a,code=sm_90a -Xptxas -v -cubin \
  -I "$1" "${@:3}" "$1/tests/kernels/teams/team_kernel.hip" -o "$folder/kernels.cubin" 2>&1) || { echo "$said"; exit 1; }
echo "$said"
(( $(grep -c "Compiling entry function 'fmha_teams" <<<"$said") == $2 )) || { echo "the assembler does not name $2 kernels"; exit 1; }
! grep -E "Potential Performance Loss|is injected|[1-9][0-9]* bytes (stack frame|spill stores|spill loads)" <<<"$said"
