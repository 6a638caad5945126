#pragma once

#include "dispatcher/types/problem.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace fmha {

/// Named predicates that a kernel may add to its sizes (`Algorithm::constraint`); a name that is not in this
/// list is an error when the kernel is registered.
enum class Constraint : std::uint8_t {
    none,
    max_seqlen_q_lt_4096,
    max_seqlen_q_le_8192,
    max_seqlen_q_gt_16,
    max_seqlen_q_gt_64,
    max_seqlen_q_gt_256,
    max_seqlen_q_gt_1024,
    max_seqlen_q_gt_2048,
    hdim_not_128,
    blocks64_le_cus,
    blocks128_lt_0_8_cus,
    even_head_groups,
    rows_of_even_groups,
};

/// Inputs of the predicates.
struct ConstraintInputs {
    std::int64_t batch = 0, nhead_q = 0, max_seqlen_q = 0;
    std::int64_t hdim_q = 0, hdim_v = 0;
    std::int64_t compute_units = 0; ///< 0 = unknown
    std::int64_t nhead_k = 0;       ///< 0 = unknown

    static ConstraintInputs of(const Problem& problem);
};

/// Empty text is `none`; unknown text gives nullopt.
std::optional<Constraint> parse_constraint(std::string_view name);

/// The predicate in words, for explanations: "batch * nhead_q * ceil(max_seqlen_q / 64) <= compute units".
std::string_view constraint_sentence(Constraint constraint);

/// True for predicates that compare with the number of compute units.
bool needs_compute_units(Constraint constraint);

/// Upstream's get_num_blocks: query blocks of `rows` rows in the whole problem, saturating.
std::int64_t query_blocks(const ConstraintInputs& inputs, std::int64_t rows);

bool holds(Constraint constraint, const ConstraintInputs& inputs);

} // namespace fmha
