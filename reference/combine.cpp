#include "reference/combine.hpp"

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/problem.hpp"
#include "reference/bounds.hpp"
#include "reference/combine_result.hpp"
#include "reference/distance.hpp"
#include "reference/matrix/combine_blocks.hpp"
#include "reference/row/combine_row.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

namespace fmha::reference {
namespace {

/// Partial results reach 2^128; times weights where binary64's exponential ends, this is left.
constexpr double lost_partial = 1e-260;

std::int64_t query_rows(const SplitKvArgs& args, std::int64_t b) {
    if (args.shape.mode == Mode::batch) return args.shape.seqlen_q;
    return std::int64_t{args.lengths.seqstart_q[b + 1]} - args.lengths.seqstart_q[b];
}

/// A tensor without rows may be absent.
void require_fp32(const TensorView& view, std::string_view name, bool has_rows) {
    if ((has_rows && !view.present()) || view.type != ElementType::fp32)
        throw Error(std::string(name) + " must be an fp32 tensor (S-3), it is " +
                    (view.present() ? std::string(to_string(view.type)) : "absent"));
}

} // namespace

CombinedRows empty_combination(const SplitKvArgs& args, std::span<const RowId> rows,
                               const ForwardOptions& options) {
    const std::int64_t splits = args.partials.num_splits;
    if (splits < 1 || splits > most_num_splits)
        throw ProblemError("S-7", "num_splits", splits,
                           "num_splits is " + std::to_string(splits) + ", 1 to " +
                               std::to_string(most_num_splits) + " can be combined");
    require_fp32(args.partials.o_acc, "o_acc", !rows.empty());
    require_fp32(args.partials.lse_acc, "lse_acc", !rows.empty());
    for (const RowId& row : rows)
        if (row.i < 0 || row.i >= query_rows(args, row.b))
            throw Error("row " + std::to_string(row.i) + " of entry " + std::to_string(row.b) +
                        " was asked for; it has " + std::to_string(query_rows(args, row.b)) + " query rows");
    const Table table(static_cast<std::int64_t>(rows.size()), args.shape.hdim_v);
    CombinedRows out;
    out.rows.assign(rows.begin(), rows.end());
    out.o = table;
    out.lse.assign(rows.size(), -infinity);
    out.splits_taken.assign(rows.size(), 0);
    out.numerics = options.numerics;
    out.scale_o = args.score.scale_o;
    out.num_splits = splits;
    if (!options.companions) return out;
    out.ell.assign(rows.size(), 0.0);
    out.largest_lse = out.mean_distance = out.ell;
    out.weighted_abs = out.weighted_distance = out.abs_o = out.weight_variance = table;
    return out;
}

CombinedRows combine(const SplitKvArgs& args, std::span<const RowId> rows, const ForwardOptions& options,
                     Oracle oracle) {
    return oracle == Oracle::matrix ? combine_in_matrix_form(args, rows, options)
                                    : combine_row_by_row(args, rows, options);
}

std::vector<RowId> all_rows(const SplitKvArgs& args) {
    std::vector<RowId> rows;
    for (std::int64_t b = 0; b < args.shape.batch; ++b)
        for (std::int64_t h = 0; h < args.shape.nhead_q; ++h)
            for (std::int64_t i = 0; i < query_rows(args, b); ++i) rows.push_back({b, h, i});
    return rows;
}

CombineBound::CombineBound(const CombinedRows& rows, std::int64_t row) : rows_(rows), row_(row) {
    const Numerics& kernel = rows.numerics;
    relative_ = accumulation_growth(rows.num_splits, kernel) + 2.0 * kernel.eps_e +
                4.0 * u32 * (1.0 + rows.mean_distance[static_cast<std::size_t>(row)]);
}

double CombineBound::error(std::int64_t c) const {
    const double ell = std::max(1.0, rows_.ell[static_cast<std::size_t>(row_)]);
    return relative_ * rows_.weighted_abs(row_, c) + 4.0 * u32 * rows_.weighted_distance(row_, c) +
           rows_.numerics.f_p / ell * rows_.abs_o(row_, c);
}

double CombineBound::limit(std::int64_t c) const {
    const Numerics& kernel = rows_.numerics;
    return std::abs(rows_.scale_o) * (1.0 + kernel.u_o) * error(c) + kernel.u_o * std::abs(expected(c)) +
           kernel.f_o;
}

double CombineBound::variance(std::int64_t c) const {
    const Numerics& kernel = rows_.numerics;
    const double inside = rows_.weight_variance(row_, c) + square(u32 * rows_.weighted_abs(row_, c));
    return square(kernel.u_o * expected(c)) / 3.0 + square(rows_.scale_o) * inside + square(kernel.f_o) / 3.0;
}

double combined_lse_limit(const CombinedRows& rows, std::int64_t row) {
    const Numerics& kernel = rows.numerics;
    const auto at = static_cast<std::size_t>(row);
    return accumulation_growth(rows.num_splits, kernel) + 2.0 * kernel.eps_e +
           4.0 * u32 * (1.0 + std::abs(rows.lse[at]) + rows.mean_distance[at]);
}

double oracle_disagreement(const CombinedRows& x, const CombinedRows& y) {
    if (x.rows != y.rows || x.o.cols() != y.o.cols() || x.splits_taken != y.splits_taken) return infinity;
    double worst = 0.0;
    for (std::size_t r = 0; r < x.rows.size(); ++r) {
        const double magnitude = x.largest_lse[r];
        worst = std::max(worst, distance(x.lse[r], y.lse[r], 1e-12 * (1.0 + std::abs(x.lse[r]) + magnitude)));
        const auto row = static_cast<std::int64_t>(r);
        for (std::int64_t c = 0; c < x.o.cols(); ++c)
            worst = std::max(
                worst, distance(x.o(row, c), y.o(row, c),
                                1e-12 * x.weighted_abs(row, c) * std::max(1.0, magnitude) + lost_partial));
    }
    return worst;
}

} // namespace fmha::reference
