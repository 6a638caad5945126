#!/usr/bin/env bash
# ninja_by_hand.sh FMHA: generated folders build with plain Ninja, which generates again when a header has changed.
set -euo pipefail
fmha=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root/kernels/targets/hip" "$work/a folder"
echo '// one' >"$work/root/kernels/targets/hip/entry.hpp"
cat >"$work/clang++" <<'END'
#!/bin/sh
case "$*" in
-v) echo 'clang version 99.0.0' >&2; exit ;;
*--print-supported-cpus*) echo gfx942; exit ;;
*-print-prog-name=*) echo /bin/true; exit ;;
esac
while [ $# -gt 1 ]; do [ "$1" = -o ] && cp "$0" "$2"; shift; done
END
chmod +x "$work/clang++"
cd "$work/a folder"
"$fmha" generate --arch gfx942 --where "c.hdim_q == 64 and c.data_type == 'bf16'" --sample 2 --root ../root \
  --compiler "$work/clang++" --out kernels
objects() { find kernels/obj -name '*.hsaco' | sort; }
ninja -C kernels
first=$(objects)
[[ $(wc -l <<<"$first") == 2 ]]
ninja -C kernels | grep 'no work to do' >/dev/null
sleep 0.1
echo '// two' >"$work/root/kernels/targets/hip/entry.hpp"
ninja -C kernels
second=$(comm -13 <(echo "$first") <(objects))
[[ $(wc -l <<<"$second") == 2 ]]
ninja -C kernels | grep 'no work to do' >/dev/null
