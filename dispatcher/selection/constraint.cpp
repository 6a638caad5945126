#include "dispatcher/selection/constraint.hpp"

#include <array>
#include <limits>

namespace fmha {

namespace {

struct Row {
    Constraint constraint;
    std::string_view name;
    std::string_view sentence;
};

constexpr std::array<Row, 13> rows{{
    {Constraint::none, "", "always"},
    {Constraint::max_seqlen_q_lt_4096, "max_seqlen_q_lt_4096", "max_seqlen_q < 4096"},
    {Constraint::max_seqlen_q_le_8192, "max_seqlen_q_le_8192", "max_seqlen_q <= 8192"},
    {Constraint::max_seqlen_q_gt_16, "max_seqlen_q_gt_16", "max_seqlen_q > 16"},
    {Constraint::max_seqlen_q_gt_64, "max_seqlen_q_gt_64", "max_seqlen_q > 64"},
    {Constraint::max_seqlen_q_gt_256, "max_seqlen_q_gt_256", "max_seqlen_q > 256"},
    {Constraint::max_seqlen_q_gt_1024, "max_seqlen_q_gt_1024", "max_seqlen_q > 1024"},
    {Constraint::max_seqlen_q_gt_2048, "max_seqlen_q_gt_2048", "max_seqlen_q > 2048"},
    {Constraint::hdim_not_128, "hdim_not_128", "hdim_q and hdim_v are not both 128"},
    {Constraint::blocks64_le_cus, "blocks64_le_cus",
     "batch * nhead_q * ceil(max_seqlen_q / 64) <= compute units"},
    {Constraint::blocks128_lt_0_8_cus, "blocks128_lt_0.8_cus",
     "batch * nhead_q * ceil(max_seqlen_q / 128) < 0.8 * compute units"},
    {Constraint::even_head_groups, "even_head_groups", "nhead_q / nhead_k is even"},
    {Constraint::rows_of_even_groups, "rows_of_even_groups",
     "max_seqlen_q > 1 and nhead_q / nhead_k is even"},
}};

static_assert(
    [] {
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (rows[i].constraint != static_cast<Constraint>(i)) return false;
        return true;
    }(),
    "constraint_sentence takes the row at the number of a constraint");

} // namespace

std::optional<Constraint> parse_constraint(std::string_view name) {
    for (const Row& row : rows)
        if (row.name == name) return row.constraint;
    return std::nullopt;
}

std::string_view constraint_sentence(Constraint constraint) {
    return rows[static_cast<std::size_t>(constraint)].sentence;
}

ConstraintInputs ConstraintInputs::of(const Problem& problem) {
    return {.batch = problem.batch,
            .nhead_q = problem.nhead_q,
            .max_seqlen_q = problem.effective_max_seqlen_q(),
            .hdim_q = problem.signature.hdim_q,
            .hdim_v = problem.signature.hdim_v,
            .compute_units = problem.compute_units,
            .nhead_k = problem.nhead_k};
}

bool needs_compute_units(Constraint constraint) {
    return constraint == Constraint::blocks64_le_cus || constraint == Constraint::blocks128_lt_0_8_cus;
}

std::int64_t query_blocks(const ConstraintInputs& inputs, std::int64_t rows_per_block) {
    std::int64_t blocks =
        inputs.max_seqlen_q / rows_per_block + (inputs.max_seqlen_q % rows_per_block != 0 ? 1 : 0);
    if (__builtin_mul_overflow(blocks, inputs.batch, &blocks) ||
        __builtin_mul_overflow(blocks, inputs.nhead_q, &blocks))
        return std::numeric_limits<std::int64_t>::max();
    return blocks;
}

bool holds(Constraint constraint, const ConstraintInputs& in) {
    switch (constraint) {
    case Constraint::none:
        return true;
    case Constraint::max_seqlen_q_lt_4096:
        return in.max_seqlen_q < 4096;
    case Constraint::max_seqlen_q_le_8192:
        return in.max_seqlen_q <= 8192;
    case Constraint::max_seqlen_q_gt_16:
        return in.max_seqlen_q > 16;
    case Constraint::max_seqlen_q_gt_64:
        return in.max_seqlen_q > 64;
    case Constraint::max_seqlen_q_gt_256:
        return in.max_seqlen_q > 256;
    case Constraint::max_seqlen_q_gt_1024:
        return in.max_seqlen_q > 1024;
    case Constraint::max_seqlen_q_gt_2048:
        return in.max_seqlen_q > 2048;
    case Constraint::hdim_not_128:
        return in.hdim_q != 128 || in.hdim_v != 128;
    case Constraint::blocks64_le_cus:
        return query_blocks(in, 64) <= in.compute_units;
    case Constraint::blocks128_lt_0_8_cus:
        return static_cast<double>(query_blocks(in, 128)) < static_cast<double>(in.compute_units) * 0.8;
    case Constraint::even_head_groups:
        return in.nhead_k > 0 && in.nhead_q / in.nhead_k % 2 == 0;
    case Constraint::rows_of_even_groups:
        return in.max_seqlen_q > 1 && holds(Constraint::even_head_groups, in);
    }
    return false;
}

} // namespace fmha
