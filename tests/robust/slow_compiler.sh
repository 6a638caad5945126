#!/bin/sh
# Stands for clang: copies its source to its object, slowly and in two parts, and notes the source in "compiled" beside it.
case "$*" in
-v) echo 'clang version 99.1.0 (fake)' >&2; exit 0 ;;
*--print-supported-cpus*) echo gfx942; exit 0 ;;
*-print-prog-name=ld.lld*) echo /bin/ld.lld; exit 0 ;;
*-print-prog-name=llvm-objdump*) echo llvm-objdump; exit 0 ;;
esac
while [ $# -gt 0 ]; do
    case "$1" in
    *.hip) source=$1 ;;
    -o) shift; object=$1 ;;
    esac
    shift
done
echo "$source" >>"$(dirname "$0")/compiled"
head -c 100 "$source" >"$object"
sleep 0.05
cp "$source" "$object"
