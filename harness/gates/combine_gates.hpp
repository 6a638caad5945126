#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/cases/case.hpp"
#include "harness/gates/judge.hpp"
#include "harness/gates/outputs.hpp"
#include "reference/combine.hpp"

#include <optional>

namespace fmha::harness {

/// A copy of the outputs of combining: "o", and "lse" where `args` has it; host memory.
Outputs combined_outputs(const SplitKvArgs& args);

/// G1 to G3 with the limits of B.7 on the partial results as they are stored, G5.2 (a row whose splits all saw no key is +0
/// and −∞ or the sink logit), G5.3 (a row of one split without a sink is that split, rounded) and G5.9. `expected` needs
/// companions and the numerics of the kernel. `fill` is that of the keys behind the partial results, absent where there are none.
Judgement judge_combined(const SplitKvArgs& args, const Outputs& outputs,
                         const reference::CombinedRows& expected, std::optional<Fill> fill);

} // namespace fmha::harness
