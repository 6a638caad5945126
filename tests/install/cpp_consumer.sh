#!/usr/bin/env bash
# cpp_consumer.sh CMAKE BUILD SOURCE GENERATOR FMHA WORK: a C++ project outside of the tree is built against the installed components and runs, and the
# command generates from its exported registry the kernels that the registry has at run time, those and no others (TST-11). Both lists come from one expansion of the set, so a third one is made without it.
set -euo pipefail
cmake=$1 build=$2 source=$3 generator=$4 fmha=$5 work=$6
rm -rf "$work/prefix" && mkdir -p "$work"
# Without the component the package says how to get it.
"$cmake" --install "$build" --prefix "$work/prefix" --component library >"$work/install.log"
configure() { "$cmake" -S "${1:-$source/tests/install/cpp_consumer}" -B "$work/consumer" -G "$generator" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Debug; }
rm -rf "$work/consumer"
! configure >"$work/missing.log" 2>&1
grep -q "component cpp is not installed" "$work/missing.log"
# A component that does not exist is no package without targets.
rm -rf "$work/consumer" "$work/wrong" && mkdir "$work/wrong"
printf 'cmake_minimum_required(VERSION 3.25)\nproject(wrong LANGUAGES C)\nfind_package(fmha REQUIRED COMPONENTS c++)\n' >"$work/wrong/CMakeLists.txt"
! configure "$work/wrong" >"$work/wrong.log" 2>&1
grep -q 'component c++ is not known; allowed: cpp' "$work/wrong.log"
rm -rf "$work/consumer"
"$cmake" --install "$build" --prefix "$work/prefix" --component development >>"$work/install.log"
configure >"$work/configure.log"
"$cmake" --build "$work/consumer" >"$work/build.log" || { tail -40 "$work/build.log"; exit 1; }
# Nothing of the tree is on its command line.
! grep -rq -e "-I$source" "$work/consumer/CMakeFiles/cpp_consumer.dir"
"$work/consumer/cpp_consumer" "$work/registry.json" | sort >"$work/run_time.txt"
"$fmha" generate --config "$work/registry.json" --format json --out "$work/generated" >"$work/generated.json" 2>"$work/generate.log"
grep -o '"fwd_gfx950_[^"]*"' "$work/generated.json" | tr -d '"' | sort >"$work/generator.txt"
[[ $(wc -l <"$work/run_time.txt") -gt 2 ]]
diff "$work/run_time.txt" "$work/generator.txt"
# The set's wildcards (mask, LSE, tile) take the values of rule set house; what it does not state is padded, and has neither bias, soft cap nor sink.
where="c.data_type == 'fp32' and c.hdim_q == 64 and c.hdim_v == 64 and c.pipeline == 'qr' and c.mode == 'batch' and c.vlayout == 'r' and c.bias == 'no'"
"$fmha" enumerate --arch gfx950 --rules house --family fwd --names --where "$where and not c.dropout and not c.logits" 2>"$work/enumerate.log" |
  sed -E 's/_p(_|$)/_psskd1dv1\1/; s/_sink//; s/$/_o1/' | sort -u >"$work/enumerated.txt"
diff "$work/enumerated.txt" "$work/run_time.txt"
