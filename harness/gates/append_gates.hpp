#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/gates/judge.hpp"
#include "harness/gates/outputs.hpp"
#include "reference/append.hpp"

namespace fmha::harness {

/// A copy of the outputs of append-KV, from where `args` says that it lies: new keys and values as the cache holds them, rows
/// of "k" and "v" by entry, KV head and new key, and the rotated channels of "q"; host memory.
Outputs appended_outputs(const AppendKvArgs& args);

/// G5.4 (tolerances B.6.4): copies have the bits of their source, rotated channels are at most one value away from the
/// rounded exact number. Elements beside them are those of G5.5.
Judgement judge_appended(const AppendKvArgs& args, const Outputs& outputs,
                         const reference::AppendedRows& expected);

} // namespace fmha::harness
