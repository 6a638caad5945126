#pragma once

#include "harness/gates/attention_gates.hpp"
#include "reference/combine.hpp"
#include "reference/forward.hpp"

#include <span>

namespace fmha::harness {

/// A copy of the outputs of split-KV's main stage: "o_acc" and "lse_acc", rows by entry, head h · num_splits + split and
/// query; host memory.
Outputs partial_outputs(const SplitKvArgs& args);

/// The facts of a judgement of partial results beside the numbers.
struct PartialsJudgeContext {
    const SplitKvArgs& args;
    const Outputs& outputs; ///< of partial_outputs
    /// Of each split, with companions and the numerics of the kernel; the rows that are checked.
    std::span<const reference::ForwardRows> expected;
    Fill fill = Fill::normal;
    std::optional<EdgeCode> edge; ///< the edge fill's code, when the case has one
    ElementType p_type = ElementType::fp32;
    InputOrigin inputs = InputOrigin::fill;
};

/// The gates of forward on the results of each split for its own keys (S-1, S-2, B.7): each gate once, as its worst split has it. The
/// rows of an edge fill are judged in the splits that decide them; some split must.
Judgement judge_partials(const PartialsJudgeContext& context);

/// The reference of a split-KV case whose two stages ran.
struct WholeJudgeContext {
    const reference::AttentionArgs& args; ///< of all keys together
    const Outputs& outputs;               ///< of combined_outputs
    /// Of all keys, with the same rows and numerics as those of the splits.
    const reference::ForwardRows& expected;
    std::span<const reference::ForwardRows> splits;
    const reference::CombinedRows& combined; ///< of the partial results as they are stored, all rows
    Fill fill = Fill::normal;
    std::optional<EdgeCode> edge;
    ElementType p_type = ElementType::fp32;
    InputOrigin inputs = InputOrigin::fill;
    bool alone = false; ///< nothing else is judged: O and LSE come without partial results
};

/// G1.whole and G3.whole: the final O and LSE against attention over all keys; no stored partial result enters. Their limits are
/// those of combining and Σ_s weight_s · E_s of B.7, where E_s contains the rounding of the stored results of split s and the effect
/// of the error of its LSE on its weight. For edge fills the exact-row gate besides.
///
/// Where they come alone, G2.whole, G2.mean.whole and forward's gates on exact rows besides. Nobody knows then how often the kernel has
/// split, so a limit is the larger one of as many splits as the case has and of one pass, which `expected` must have the numerics for.
void judge_whole(const WholeJudgeContext& context, Judgement& judgement);

} // namespace fmha::harness
