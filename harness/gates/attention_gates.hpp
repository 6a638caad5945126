#pragma once

#include "harness/cases/case.hpp"
#include "harness/data/edge_code.hpp"
#include "harness/gates/judge.hpp"
#include "harness/gates/outputs.hpp"
#include "reference/attention_args.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace fmha::reference {
struct ForwardRows;
}

namespace fmha::harness {

/// The facts of a judgement beside the numbers.
struct JudgeContext {
    const reference::AttentionArgs& args;
    const Outputs& outputs; ///< of attention_outputs
    /// With companions and the numerics of the kernel under test; the rows that are checked.
    const reference::ForwardRows& expected;
    Fill fill = Fill::normal;
    /// The edge fill's code, when the case has one.
    std::optional<EdgeCode> edge;
    ElementType p_type = ElementType::fp32;
    InputOrigin inputs = InputOrigin::fill; ///< of Q, K and V
};

/// What patterns need about the query rows of a forward problem; checked are those of `expected`. Refers to `context`.
RowSpace query_rows(const JudgeContext& context);

/// Runs G1, G2, G3 (tolerances B.2 to B.4) on the rows of `expected`, and on all rows the exact gates G5.1 to
/// G5.3 and G5.9 and, for edge fills, the exact-row gate, which fails when it could decide no row that sees a key. The
/// formulas are those of reference/bounds.hpp; nothing here is a constant that somebody tuned. `huge` data is judged by the exact gates only (B.10).
Judgement judge(const JudgeContext& context);

/// O of one plain pass in low precision, in some rows of a case. It knows no kernel.
struct PlainPass {
    std::vector<std::int64_t> of; ///< positions among the case's rows
    std::vector<double> o;        ///< their channels, row after row
};

/// Of `most` rows of the case, evenly spread.
PlainPass plain_pass(const reference::AttentionArgs& args, const std::vector<reference::RowId>& rows,
                     const ElementTypes& types, std::int64_t most = 64);

/// G4 (B.5), reported and never required: the error in units of that of one plain pass in low precision.
GateVerdict low_precision_yardstick(const JudgeContext& context, const ElementTypes& types,
                                    const PlainPass& plain);
/// The same where one kernel is judged.
GateVerdict low_precision_yardstick(const JudgeContext& context, const ElementTypes& types);

} // namespace fmha::harness
