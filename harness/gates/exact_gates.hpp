#pragma once

#include "harness/gates/attention_gates.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace fmha::harness::detail {

/// G5.1 to G5.3, G5.9 and the exact rows of edge fills and of ties, on all rows. One split of several has no verdict on the rows
/// of an edge fill where it decides none, because another may.
void judge_exactly(const JudgeContext& context, Findings& findings, Judgement& judgement);

/// The exact rows of the fills `ties` and `weight_ties`.
void judge_tie_rows(const JudgeContext& context, Findings& findings, Judgement& judgement);

/// Whether the gate `exact` asks for the winning key of each row.
bool has_edge_rows(Fill fill, InputOrigin inputs);

/// The failed gate `exact` of an edge fill that decides none of the `seeing` rows that see a key.
GateVerdict undecided_edge_rows(const std::string& tensor, std::int64_t seeing);

bool is_power_of_two(double value);

/// Whether P's pre-scale is a power of two, as the kernel declares it (T-6).
bool has_exact_prescale(const JudgeContext& context);

/// What an exact gate rejects in one row.
struct RowMistake {
    std::string first; ///< sentence of the first wrong column
    std::vector<std::int64_t> columns;

    /// The sentence is asked for once.
    template <class Sentence>
    void add(std::int64_t column, const Sentence& sentence) {
        if (columns.empty()) first = sentence();
        columns.push_back(column);
    }
};

/// Tells of the wrong columns of a row, if there are any.
void reject_row(const Outputs::Tensor& tensor, const reference::RowId& id, const RowMistake& mistake,
                ExactGate& gate, Findings& findings);

/// O must be the V row of key j, rounded.
RowMistake differs_from_v_row(const JudgeContext& context, const reference::RowId& id, std::int64_t j);

} // namespace fmha::harness::detail
