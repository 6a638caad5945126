#pragma once

#include "reference/combine.hpp"
#include "reference/numerics/formats.hpp"

#include <cstdint>
#include <span>

namespace fmha::reference {

/// Where a partial result lies: entry, query head, split, and row of the tensor.
struct PartialSite {
    std::int64_t b = 0, h = 0, split = 0, row = 0;
};

/// lse_s of one row, and channel c of its o_s (S-3).
double partial_lse(const SplitKvArgs& args, const PartialSite& site);
double partial_output(const SplitKvArgs& args, const PartialSite& site, std::int64_t c);

/// The sink logit of a query head, −∞ when absent (K-4, K-5).
double split_sink(const SplitKvArgs& args, std::int64_t h);

/// Row of the partial results at which entry b begins.
std::int64_t first_partial_row(const SplitKvArgs& args, std::int64_t b);

/// m and Σ exp(lse_s − m) + exp(sink − m) of S-4; −∞ and 0 when there is nothing to add.
struct SplitTotal {
    double maximum = 0.0, sum = 0.0;
};
SplitTotal total_of(std::span<const double> lse, double sink);

/// LSE = m + ln Σ of S-4.
double combined_lse(const SplitTotal& total);

/// The weight exp(lse_s − LSE) of a split, 0 for an empty one.
double split_weight(double lse, const SplitTotal& total);

/// The rules that the row form is assembled from. Tests replace one by a faulty one and see the matrix form disagree;
/// everything else uses the defaults.
struct CombineParts {
    double (*lse)(const SplitKvArgs&, const PartialSite&) = partial_lse;
    double (*output)(const SplitKvArgs&, const PartialSite&, std::int64_t c) = partial_output;
    double (*sink)(const SplitKvArgs&, std::int64_t h) = split_sink;
    std::int64_t (*first_row)(const SplitKvArgs&, std::int64_t b) = first_partial_row;
    SplitTotal (*total)(std::span<const double> lse, double sink) = total_of;
    double (*combined)(const SplitTotal&) = combined_lse;
    double (*weight)(double lse, const SplitTotal&) = split_weight;
};

/// S-4 one row, one split and one channel after another. Same contract as `combine`.
CombinedRows combine_row_by_row(const SplitKvArgs& args, std::span<const RowId> rows,
                                const ForwardOptions& options, const CombineParts& parts = {});

} // namespace fmha::reference
