#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/gates/judge.hpp"
#include "harness/gates/outputs.hpp"
#include "reference/append.hpp"

namespace fmha::harness {

/// A copy of the outputs of append-KV, from where `args` says that it lies: new keys and values as the cache holds them, rows
/// of "k" and "v" by entry, KV head and new key, and those of "q", where `args` has it; host memory.
Outputs appended_outputs(const AppendKvArgs& args);

/// A copy of "q" alone.
Outputs queries_of(const AppendKvArgs& args);

/// The first channel of Q that is not rotated and keeps its bits (V-4).
inline std::int64_t first_kept_channel(const AppendKvArgs& args) {
    return args.rope.type == Rope::none ? 0 : args.rope.rotary_dim;
}

/// G5.4 (tolerances B.6.4): copies have the bits of their source, rotated channels are at most one value away from the
/// rounded exact number, and the other channels of Q are those of `before`, its `queries_of`. Elements beside them are those of G5.5.
Judgement judge_appended(const AppendKvArgs& args, const Outputs& outputs,
                         const reference::AppendedRows& expected, const Outputs& before);

} // namespace fmha::harness
