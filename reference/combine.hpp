#pragma once

#include "dispatcher/types/args.hpp"
#include "reference/forward.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// The second stage of split-KV in binary64: S-4 on the partial results as they are stored, by any kernel.
namespace fmha::reference {

/// One entry per requested row, in the order asked; tables are rows x hdim_v. Companions are empty unless asked for.
/// w_s = exp(lse_s − LSE) is the weight of split s, M the largest lse_s or the sink logit.
struct CombinedRows {
    std::vector<RowId> rows;
    Table o;                                ///< O of S-4 before scale_o and before any rounding
    std::vector<double> lse;                ///< LSE of S-4; −∞ without a key and without a sink
    std::vector<std::int64_t> splits_taken; ///< splits with lse_s > −∞

    std::vector<double> ell;           ///< Σ exp(lse_s − M) + exp(sink − M), at least 1
    std::vector<double> largest_lse;   ///< max |lse_s| over the splits taken, and |sink|
    std::vector<double> mean_distance; ///< Σ w_s (M − lse_s), the sink's term included
    Table weighted_abs;                ///< A(c) = Σ w_s |o_s(c)|
    Table weighted_distance;           ///< Σ w_s (M − lse_s) |o_s(c)|
    Table abs_o;                       ///< Σ |o_s(c)| over the splits taken
    Table weight_variance; ///< Σ w_s² ζ_s² (o_s(c) − O(c))², ζ_s² = u32²((M − lse_s)² + 1) + ε_e²/3

    Numerics numerics;
    double scale_o = 1.0;
    std::int64_t num_splits = 1;

    bool has_companions() const { return !ell.empty(); }
};

/// Combines the partial results of `rows` (S-4). Reads `partials`, the sink logits, scale_o and where the rows lie,
/// nothing else; the content of o_acc for a split without keys does not matter. Throws ProblemError (S-7) for a number of
/// splits outside 1 … 128, and Error for a row outside its entry or partial results that are absent or not fp32.
CombinedRows combine(const SplitKvArgs& args, std::span<const RowId> rows, const ForwardOptions& options = {},
                     Oracle oracle = Oracle::matrix);

/// Every logical row of O, entries outermost.
std::vector<RowId> all_rows(const SplitKvArgs& args);

/// Limits of one row of the combined O (B.7 with exact partial results).
class CombineBound {
  public:
    /// `rows` must have companions and outlive this.
    CombineBound(const CombinedRows& rows, std::int64_t row);

    /// scale_o · O, unrounded and unclamped.
    double expected(std::int64_t c) const { return rows_.scale_o * rows_.o(row_, c); }
    /// E(c) before scale_o: A·(γ̃(n) + 4u32 + 2ε_e) of B.7, and 4u32 · Σ w_s (M − lse_s) |o_s| + 4u32 · A · Σ w_s (M − lse_s)
    /// for the rounding of the exponents, which B.7 leaves out because it is small where weights are large, and f_p · Σ|o_s|/ℓ
    /// for weights that underflow.
    double error(std::int64_t c) const;
    /// G1: the largest |o − expected(c)| that is accepted.
    double limit(std::int64_t c) const;
    /// G2: predicted variance of o − expected(c), as in B.3.
    double variance(std::int64_t c) const;

  private:
    const CombinedRows& rows_;
    std::int64_t row_;
    double relative_ = 0.0; ///< factor of A in E
};

/// G3: the largest |lse − reference| that is accepted where the reference is finite: γ̃(n) + 2ε_e + 4u32(1 + |LSE|) of
/// B.4 and 4u32 · Σ w_s (M − lse_s).
double combined_lse_limit(const CombinedRows& rows, std::int64_t row);

/// The largest distance between two results in units of the agreement bound of B.1, with the largest |lse_s| for a; at
/// most 1 when they agree. Infinite when rows, infinities, counts or shapes differ. `x` must have companions.
double oracle_disagreement(const CombinedRows& x, const CombinedRows& y);

} // namespace fmha::reference
