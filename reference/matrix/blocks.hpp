#pragma once

#include "reference/attention.hpp"
#include "reference/matrix/features.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace fmha::reference::matrix {

/// Consecutive keys of one KV head, decoded once for all the rows that meet them.
struct KeyBlock {
    std::int64_t first = 0;
    Matrix k, v;
    Matrix k_abs, k_square, v_abs, v_square;        ///< companions only
    Eigen::RowVectorXd v_abs_total, v_square_total; ///< sums over the block's keys

    void load(const AttentionArgs& args, const EntryExtent& extent, std::int64_t hk, std::int64_t first_key,
              std::int64_t count, bool companions);
    Eigen::Index size() const { return k.rows(); }
};

/// Rows of one entry and KV head against all keys, one block of keys at a time with a running maximum, so
/// that memory does not grow with the number of keys.
class RowGroup {
  public:
    /// `rows`, ordered by head and row, are those of `out` from `first_out` on; all share b and the KV head.
    RowGroup(const AttentionArgs& args, const EntryExtent& extent, std::int64_t hk,
             std::span<const RowId> rows, Eigen::Index first_out, ForwardRows& out);

    /// Fills the rows of `out`; returns the number of visible pairs (row, key).
    std::int64_t run();

  private:
    /// Visible keys of a row as columns of the block: sink tokens, then the window; either may be empty.
    struct Run {
        Eigen::Index begin = 0, size = 0;
    };
    using Runs = std::array<Run, 2>;

    Runs runs_of(std::size_t row) const;
    bool choose_chunk(Eigen::Index row, Eigen::Index count);
    void score_chunk();
    void weigh_row(Eigen::Index r);
    double row_maximum(Eigen::Index r);
    void note_visible(Eigen::Index r);
    void bound_scores(Eigen::Index r);
    void add_value_sums(Eigen::Index r);
    void exponentiate(Eigen::Index r, double maximum);
    void drop(Eigen::Index r);
    void rescale_row(Eigen::Index r, double factor);
    void accumulate_chunk();
    void finish_row(Eigen::Index row);

    Eigen::Index out_row(Eigen::Index r) const { return first_out_ + chunk_ + r; }

    const AttentionArgs& args_;
    const EntryExtent& extent_;
    std::int64_t hk_;
    std::span<const RowId> rows_;
    Eigen::Index first_out_;
    ForwardRows& out_;
    bool companions_, elementwise_, alibi_;

    // All rows of the group.
    Matrix q_;
    std::vector<VisibleKeys> sees_;
    Eigen::VectorXd sum_;                ///< Σ exp(s − running maximum)
    Eigen::VectorXd zeta_sum_;           ///< Σ w²ζ²
    Eigen::VectorXd beta0_, beta_range_; ///< ALiBi: β0 of B.2 and max |β − β0|
    Eigen::VectorXd beta_gap_;           ///< ALiBi: min |β − β0|
    Matrix zeta_value_;                  ///< Σ w²ζ²v̂

    // The rows chunk_ … chunk_ + runs_.size() − 1 against the columns column_ … column_ + columns_ − 1 of the
    // block.
    KeyBlock keys_;
    Eigen::Index chunk_ = 0, column_ = 0, columns_ = 0;
    std::vector<Runs> runs_;
    Matrix s_;    ///< scores, then exponentials, then kept exponentials
    Matrix beta_; ///< one row
    Matrix a_;    ///< Σ|q·k|, then w²(ζ² + u_p²/3)
    Matrix zeta_; ///< Σ(q·k)², then w²ζ²
    Bytes bytes_;
};

} // namespace fmha::reference::matrix
