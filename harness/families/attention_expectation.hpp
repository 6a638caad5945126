#pragma once

#include "harness/data/role.hpp"
#include "harness/families/family.hpp"
#include "harness/gates/attention_gates.hpp"
#include "reference/attention.hpp"

#include <optional>
#include <vector>

namespace fmha::harness {

/// The rows that the reference computes for a case: a sample when the case asks for one.
std::vector<reference::RowId> expected_rows(const Case& c, const reference::AttentionArgs& args);

/// The lines on which the slow oracle checks the fast one: all where `work` is at most `most_work`, evenly spread ones where it is
/// more.
template <class Id>
std::vector<Id> lines_of_agreement(const std::vector<Id>& lines, double work, double most_work) {
    const auto stride = static_cast<std::size_t>(1.0 + work / most_work);
    std::vector<Id> some;
    for (std::size_t n = 0; n < lines.size(); n += stride) some.push_back(lines[n]);
    return some;
}

/// Distance of the two oracles on `rows`: on all of them where the problem is small, on evenly spread ones where it is large.
double attention_disagreement(const reference::AttentionArgs& args, const std::vector<reference::RowId>& rows,
                              int threads);

/// A NaN in the reference is an error of the harness, never a reason to pass.
bool has_nan(const reference::ForwardRows& rows);

/// The reference of attention in one stage, forward or over a cache, and the gates on it.
class AttentionExpectation final : public CaseExpectation {
  public:
    /// Of `expected_rows`. `source` and the memory of `args` must outlive this.
    AttentionExpectation(const DataSource& source, reference::AttentionArgs args, int threads);
    /// The same of `rows`, which ascend.
    AttentionExpectation(const DataSource& source, reference::AttentionArgs args,
                         std::vector<reference::RowId> rows, int threads);

    /// 0 for the fill `huge`, whose sums no two orders agree on.
    double oracle_disagreement() override;
    StageVerdict judge(KernelFamily stage, const Outputs& outputs, const Numerics& numerics,
                       InputOrigin inputs) override;
    void each_bounded(KernelFamily stage, const Outputs& outputs,
                      const std::function<void(const Bounded&)>& visit) override;

  private:
    const reference::ForwardRows& for_numerics(const Numerics& numerics);

    const DataSource& source_;
    reference::AttentionArgs args_;
    int threads_;
    std::vector<reference::RowId> rows_;
    std::optional<reference::ForwardRows> expected_; ///< of the numerics that were asked for last
    std::optional<PlainPass> plain_;                 ///< absent before the first judgement
};

} // namespace fmha::harness
