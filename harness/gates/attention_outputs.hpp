#pragma once

#include "harness/gates/outputs.hpp"
#include "reference/attention_args.hpp"

namespace fmha::harness {

/// A copy of the outputs of a kernel of attention in one stage: "o", and where `args` has them "lse" and "randval", host memory. Random
/// bytes at positions that the mask hides are not outputs (D-7) and are stored as 0.
Outputs attention_outputs(const reference::AttentionArgs& args);
/// The same of `rows` alone, which ascend.
Outputs attention_outputs(const reference::AttentionArgs& args, std::vector<reference::RowId> rows);

} // namespace fmha::harness
