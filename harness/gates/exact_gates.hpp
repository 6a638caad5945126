#pragma once

#include "harness/gates/fwd_gates.hpp"

namespace fmha::harness::detail {

/// G5.1 to G5.3, G5.9 and the exact rows of edge fills, on all rows.
void judge_exactly(const FwdJudgeContext& context, Findings& findings, Judgement& judgement);

} // namespace fmha::harness::detail
