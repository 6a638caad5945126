#!/usr/bin/env bash
# abi.sh CXX SOURCE_DIR WORK: the adapter with the headers of a checkout in the way of the compiler, right ones and wrong ones. A wrong one is a
# sentence of the compiler's.
set -euo pipefail
cxx=$1 source=$2 work=$3
mkdir -p "$work"
printf '#include "dispatcher/upstream/ck/forward_types.hpp"\nstatic_assert(std::is_same_v<fmha::ck::fmha_fwd_args, ::fmha_fwd_args>);\n' >"$work/forward.cpp"
printf '#include "dispatcher/upstream/ck/backward_types.hpp"\nstatic_assert(std::is_same_v<fmha::ck::fmha_bwd_args, ::fmha_bwd_args>);\n' >"$work/backward.cpp"
printf '#include "dispatcher/upstream/ck/forward.hpp"\n#include "dispatcher/upstream/ck/cache.hpp"\nauto to = &fmha::ck::detail::cache_to_ours<fmha::PagedKvArgs, fmha::ck::PagedKvCall>;\n' >"$work/whole.cpp"
printf '#include "dispatcher/upstream/ck/forward_types.hpp"\n#include "dispatcher/upstream/ck/backward_types.hpp"\n' >"$work/both.cpp"
compile() { "$cxx" -std=c++20 -fsyntax-only -I"$source" -I"$source/tests/dispatcher/ck/checkout" "$@" 2>&1; }
for right in forward backward whole; do
  compile "$work/$right.cpp" || { echo "a right checkout does not compile ($right)"; exit 1; }
done
# says SENTENCE FILE [FLAGS…]: the compiler refuses and its output has the sentence.
says() {
  local sentence=$1 said status=0
  said=$(compile "$work/$2" "${@:3}") || status=$?
  [[ $status -ne 0 && $said == *"$sentence"* ]] || { echo "expected “$sentence” with ${*:3}, status $status:"; head -20 <<<"$said"; exit 1; }
}
says "this checkout's fmha_fwd_args has another number of members than the adapter knows" forward.cpp -DFAULT_ADDED
says "this checkout's structure has no member has_sink" forward.cpp -DFAULT_DROPPED
says "this checkout's member hdim_q is no int, as the adapter takes it to be" forward.cpp -DFAULT_TYPE
says "this checkout numbers its masks otherwise than M-4" backward.cpp -DFAULT_MASK_NUMBERS
says "cannot be in one source, since both define FmhaMasks" both.cpp
