#!/usr/bin/env bash
# beside.sh CXX SOURCE_DIR FMHA WORK: the kernels of a checkout on our tensors, from a checkout that stands in for one: right, wrong, silent,
# stray, hanging, crashing and without a kernel, built the way a real one is.
set -euo pipefail
cxx=$1 source=$2 fmha=$3 work=$4
headers=$source/tests/dispatcher/ck/checkout
rm -rf "$work"
fail() { echo "$*"; exit 1; }
# What a build of the checkout leaves behind: objects of the kernels, in older releases those of the example with its main.
kernels() { # FOLDER DIRECTION [FLAGS…]
  mkdir -p "$work/$1"
  "$cxx" -std=c++20 -O1 -I"$source" -I"$headers" "${@:3}" -c "$source/tests/parity/checkout/fmha_$2_api.cpp" -o "$work/$1/fmha_$2_api.cpp.o"
}
kernels ck/tile_fmha_fwd_instances.dir fwd
kernels ck/tile_fmha_bwd_instances.dir bwd
kernels old/tile_example_fmha_bwd.dir bwd -DFAULT_AT_ONCE
printf 'int main() {}\n' >"$work/main.cpp"
"$cxx" -c "$work/main.cpp" -o "$work/old/tile_example_fmha_bwd.dir/fmha_bwd.cpp.o"
build() { CXX=$cxx CXXFLAGS=${flags:-} "$source/parity/side_by_side/checkout/build" "$@" 2>&1; }
build "$headers" "$work/ck" "$work/programs"
flags=-DFAULT_AT_ONCE build "$headers" "$work/old" "$work/old_programs"
flags=

forward='fwd/parity[seqlen_q=64,seqlen_k=256]@1' backward='bwd/plain[hdim=64,seqlen_q=33,seqlen_k=70]@3'
# expect STATUS SENTENCE… -- MOOD ARGUMENTS…: what fmha compare says of it.
expect() {
  local status=$1 sentences=() got=0 said
  shift
  while [[ $1 != -- ]]; do sentences+=("$1"); shift; done
  said=$(FAKE=$2 "$fmha" compare --cases-root "$source/cases" --seconds ${seconds:-100} "${@:3}" 2>&1) || got=$?
  for sentence in "${sentences[@]}"; do [[ $said == *"$sentence"* ]] || fail "$2: expected “$sentence” in:"$'\n'"$said"; done
  [[ $got -eq $status ]] || fail "$2: ended with $got, expected $status:"$'\n'"$said"
}
on=(--ck-kernels "$work/programs")
expect 0 'both_right           fwd/parity[' 'both_right           bwd/plain[' $'\n  o        ' $'\n  dq       ' $'\n  dk       ' $'\n  dv       ' \
  'of the limit' '2 asked   2 both_right' GREEN -- right "${on[@]}" "$forward" "$backward"
expect 0 'both_right           bwd/plain[' -- right --ck-kernels "$work/old_programs" "$backward"
expect 1 'only_ours_right' 'theirs wrong (G1 o:' RED -- wrong "${on[@]}" "$forward"
expect 1 'only_ours_right' 'theirs wrong (G1' $'\n  dq       ' RED -- wrong "${on[@]}" "$backward"
expect 1 'only_ours_right' 'written outside the logical outputs: o: element' RED -- stray "${on[@]}" "$forward"
expect 1 'no_answer' 'it ended well and has written nothing' RED -- silent "${on[@]}" "$forward"
expect 1 'no_answer' 'it ended well and has written nothing' RED -- silent "${on[@]}" "$backward"
seconds=3 expect 1 'no_answer' 'did not end within 3 s' RED -- hanging "${on[@]}" "$forward"
expect 1 'no_answer' 'signal 11 ended it' RED -- crashing "${on[@]}" "$backward"
expect 0 'only_ours_computes' 'it has no kernel for this' -- right "${on[@]}" 'fwd/parity[mask=t]@1'
expect 1 'not_compared' 'built without fwd_pagedkv' 'nothing was compared' -- right "${on[@]}" 'pagedkv/plain[]@0'
expect 2 'there is no fmha_ck_fwd; make it from a built checkout' -- right --ck-kernels "$work/old_programs" "$forward"
expect 2 'give one of --ck-kernels' -- right "$forward"

# What both wrote, as files that the other commands read.
FAKE=right "$fmha" compare --cases-root "$source/cases" "${on[@]}" "$forward" --keep "$work/kept" --json "$work/beside.json" >/dev/null
grep -q '"largest_of_limit"' "$work/beside.json" || fail "beside.json has no distances"
kept=$(echo "$work/kept/"*)
"$fmha" check --cases-root "$source/cases" --case "$forward" --tensors "$kept/inputs" --outputs "$kept/theirs" >/dev/null || fail "what theirs wrote is not right"
"$fmha" compare --cases-root "$source/cases" "$forward" --tensors "$kept/ours" "$kept/theirs" | grep 'of the limit' >/dev/null || fail "the folders are not compared"

# The programs, called by hand or by another release.
says() { # SENTENCE COMMAND…
  local said status=0
  said=$("${@:2}" 2>&1) || status=$?
  [[ $status -ne 0 && $said == *"$1"* ]] || fail "expected “$1”, status $status: $said"
}
mkdir "$work/call"
says usage "$work/programs/fmha_ck_fwd"
says 'call: it cannot be read' "$work/programs/fmha_ck_fwd" "$work/call" 0
printf 'problem api_family=fwd;added=1\n' >"$work/call/call"
says 'fields that this program does not know' "$work/programs/fmha_ck_fwd" "$work/call" 0
printf 'problem \nq.data q+0\n' >"$work/call/call"
says 'there is no line shape.mode' "$work/programs/fmha_ck_fwd" "$work/call" 0
says 'DEVICE is x' "$work/programs/fmha_ck_fwd" "$work/call" x
says 'is no checkout of Composable Kernel' env CXX="$cxx" "$source/parity/side_by_side/checkout/build" "$work" "$work/ck" "$work/none"
says 'no kernels below' env CXX="$cxx" "$source/parity/side_by_side/checkout/build" "$headers" "$work/call" "$work/none"
says 'there is no nowhere' env CXX=nowhere "$source/parity/side_by_side/checkout/build" "$headers" "$work/ck" "$work/none"
