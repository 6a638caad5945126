#!/usr/bin/env bash
# portable_generates.sh PREFIX SOURCE: the headers that the installed command compiles kernels with are there, every one, and the
# same as those of the source tree. A compiler that only answers questions shows which folder it would be given.
set -euo pipefail
prefix=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/clang++" <<'END'
#!/bin/sh
case "$*" in
-v) echo 'clang version 99.0.0' >&2 ;;
*--print-supported-cpus*) echo gfx942 ;;
*-print-prog-name=*) echo /bin/true ;;
*) exit 1 ;;
esac
END
chmod +x "$work/clang++"
generate() {
  env -u FMHA_KERNEL_ROOT "$prefix/bin/fmha" generate --arch gfx942 --sample 1 --compiler "$work/clang++" --out "$work/$1" "${@:2}"
}
generate installed
grep -q -e "-I$prefix/share/fmha/include " "$work/installed/build.ninja"
generate source --root "$source"
# Objects are named by content, headers included.
diff <(grep '^build' "$work/installed/build.ninja") <(grep '^build' "$work/source/build.ninja")
