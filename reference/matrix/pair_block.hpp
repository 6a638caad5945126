#pragma once

#include "reference/attention.hpp"
#include "reference/backward.hpp"
#include "reference/backward_result.hpp"
#include "reference/matrix/features.hpp"

#include <cstdint>
#include <vector>

namespace fmha::reference::matrix {

/// Query rows of one (entry, head), decoded: one line each, in the order given.
struct QueryLines {
    std::vector<RowId> rows;
    Matrix q; ///< with scale_s
    Matrix d_o;
    Eigen::ArrayXd lse, delta, delta_abs; ///< LSE, Δ and Σ|dO·O|
    std::vector<VisibleKeys> sees;
    Eigen::ArrayXd beta0; ///< β0 of B.2; 0 without ALiBi

    QueryLines(const BwdArgs& args, const AttentionArgs& forward, const EntryExtent& extent,
               std::vector<RowId> which);
    Eigen::Index size() const { return q.rows(); }
};

/// Keys of one KV head, ascending, decoded.
struct KeyLines {
    std::vector<std::int64_t> keys;
    Matrix k, v;

    KeyLines(const AttentionArgs& forward, const EntryExtent& extent, std::int64_t hk,
             std::vector<std::int64_t> which);
    Eigen::Index size() const { return k.rows(); }
};

/// Some rows against some keys: the values of W-2 to W-6 and B.9 for each pair, 0 where a row does not see a key.
class PairBlock {
  public:
    using Array = Eigen::Array<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

    PairBlock(const BwdArgs& args, const AttentionArgs& forward, const EntryExtent& extent,
              const QueryLines& queries, const KeyLines& keys);
    /// Computes the members after kept_p, which bounds need.
    void add_companions(const Numerics& kernel, const GradientGrowth& growth);

    std::int64_t visible = 0; ///< pairs
    Array ds;                 ///< dS
    Array kept_p;             ///< κp

    Array magnitude;        ///< p(κB + C) with the loss of the score
    Array kept_p_magnitude; ///< κp with the loss of the score
    Array e_ds, e_c;        ///< E_dS, E_c
    Array ds_variance;      ///< of dS: its cast, the sums inside it, its score, and what underflows
    Array kept_p_variance;  ///< of the cast of P, and its score
    Array e_kept_p;         ///< κp · (e_p + u + u_m + 8u32) + f/p_undrop

  private:
    Array bias_of(const BwdArgs& args, const AttentionArgs& forward, const EntryExtent& extent) const;
    Array kept_of(const BwdArgs& args, const AttentionArgs& forward, const EntryExtent& extent) const;

    const QueryLines& queries_;
    const KeyLines& keys_;
    bool has_alibi_;
    Array beta_, s_; ///< of every pair, seen or not; no beta without bias
    Array p_, dp_;   ///< p is 0 where a row does not see a key
    Array kept_;     ///< κ; empty without dropout
};

} // namespace fmha::reference::matrix
