#!/bin/sh
# Stands for clang: copies its source to its object and notes the source in "compiled" beside it. Files beside it make it another one: in "slow" stand
# the seconds that it waits between two parts of an object, in "refuse" a text that no source may contain, in "say" what it says about each, in "vanish" a text whose sources leave no object; with "touch" it changes a header each time.
here=$(dirname "$0")
case "$*" in
-v) echo 'clang version 99.1.0 (fake)' >&2; exit 0 ;;
*--print-supported-cpus*) echo gfx942 gfx950; exit 0 ;;
*-print-prog-name=ld.lld*) echo /bin/ld.lld; exit 0 ;;
*-emit-pch*) exit 0 ;;
*-print-prog-name=llvm-objdump*) echo "$here/llvm-objdump"; exit 0 ;;
esac
while [ $# -gt 0 ]; do
    case "$1" in
    *.hip) source=$1 ;;
    -o) shift; object=$1 ;;
    esac
    shift
done
echo "$source" >>"$here/compiled"
if [ -f "$here/touch" ]; then echo '//' >>"$here/../root/kernels/other.hpp"; fi
if [ -f "$here/refuse" ] && grep -q -f "$here/refuse" "$source"; then
    echo "$source:1:1: error: refused" >&2
    echo "and a second line" >&2
    exit 1
fi
if [ -f "$here/vanish" ] && grep -q -f "$here/vanish" "$source"; then exit 0; fi
if [ -f "$here/slow" ]; then
    head -c 100 "$source" >"$object"
    sleep "$(cat "$here/slow")"
fi
echo "remark: compiled $source" >&2
if [ -f "$here/say" ]; then cat "$here/say" >&2; fi
cp "$source" "$object"
