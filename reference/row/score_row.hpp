#pragma once

#include "reference/row/row_oracle.hpp"

#include <vector>

namespace fmha::reference {

/// The results of F-1 … F-5 for one key that the row sees.
struct ScoredKey {
    std::int64_t j = 0;
    double s = 0.0;      ///< score; keys with −∞ are not listed (E-2)
    double a = 0.0;      ///< |σ|·Σ|q·k|
    double square = 0.0; ///< σ²·Σ(q·k)²
    double beta = 0.0;   ///< β(i, j)
    double kept = 1.0;   ///< keep(i, j)/p_undrop of F-9
};

/// Scores rows one at a time; holds the decoded K and V of the entry and KV head that it looked at last.
class RowScorer {
  public:
    RowScorer(const AttentionArgs& args, const RowParts& parts);

    /// The visible keys of `row`, ascending. Throws Error when the row is not a logical one.
    const std::vector<ScoredKey>& score(const RowId& row);

    const Entry& entry() const { return entry_; }
    /// The largest β of the keys that the row sees, those of other splits among them; −∞ without one.
    double largest_beta() const { return largest_beta_; }
    /// Keys of the entry that count.
    std::int64_t keys_of_split() const { return keys_of_split_; }
    /// v̂(j, ·) of F-10, hdim_v values.
    const double* value_row(std::int64_t j) const {
        return &v_[static_cast<std::size_t>(j * args_.shape.hdim_v)];
    }
    std::int64_t scores_evaluated() const { return scores_evaluated_; }

  private:
    void load(std::int64_t b, std::int64_t hk);
    void load_query(const RowId& row);
    double beta(const RowId& row, std::int64_t j) const;

    const AttentionArgs& args_;
    const RowParts& parts_;
    DropoutConstants dropout_;
    std::int64_t b_ = -1, hk_ = -1;
    Entry entry_;
    std::vector<double> q_, k_, v_;
    double q_descale_ = 1.0;        ///< with the modes that have one per row
    std::vector<double> k_descale_; ///< one per key
    std::vector<ScoredKey> keys_;
    double largest_beta_ = 0.0;
    std::int64_t keys_of_split_ = 0;
    std::int64_t scores_evaluated_ = 0;
};

} // namespace fmha::reference
