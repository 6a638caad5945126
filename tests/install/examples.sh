#!/usr/bin/env bash
# examples.sh CMAKE BUILD GENERATOR WORK: the programs in C++ and C of dispatcher/examples, as the package libfmha-dev installs them, are built against the
# installed components with nothing of the tree, and each of them says that it is right.
set -euo pipefail
cmake=$1 build=$2 generator=$3 work=$4
rm -rf "$work" && mkdir -p "$work"
for component in library development; do
  "$cmake" --install "$build" --prefix "$work/prefix" --component "$component" >>"$work/install.log"
done
examples=$work/prefix/share/doc/fmha-development/examples
"$cmake" -S "$examples/packages" -B "$work/build" -G "$generator" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Debug >"$work/configure.log" ||
  { tail -20 "$work/configure.log"; exit 1; }
"$cmake" --build "$work/build" >"$work/build.log" || { tail -40 "$work/build.log"; exit 1; }
"${cmake%/*}/ctest" --test-dir "$work/build" --no-tests=error --output-on-failure
# Every program of the folder was one of them.
programs=$(find "$examples/cpp" "$examples/c" -name '*.c' -o -name '*.cpp' ! -name attention.cpp | wc -l)
[[ $("${cmake%/*}/ctest" --test-dir "$work/build" -N | tail -1) == "Total Tests: $programs" ]] || { echo "$programs programs, but other tests"; exit 1; }
