#pragma once

#include "harness/gates/fwd_gates.hpp"
#include "harness/gates/pattern.hpp"
#include "reference/forward.hpp"

#include <limits>

/// What the gates of forward share. Not for other rooms.
namespace fmha::harness::detail {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Collects the elements that failed, and the ten that came closest to failing or failed worst.
class Findings {
  public:
    explicit Findings(const FwdJudgeContext& context);

    /// One checked element with its distance in units of the limit.
    void element(Eigen::Index row, std::int64_t column, double got, double expected, double limit,
                 double ratio, const char* tensor);
    /// A row or element that an exact gate rejected.
    void wrong(const reference::RowId& row, std::int64_t column);

    std::vector<Deviation> worst() const;
    std::string pattern() const;

  private:
    struct Ranked {
        double ratio;
        Deviation deviation;
    };
    std::string pattern_of(const std::vector<WrongElement>& wrong, std::int64_t checked_rows) const;

    const FwdJudgeContext& context_;
    std::vector<Eigen::Index> expected_row_; ///< of each row of the outputs; −1 where nothing is expected
    std::vector<Ranked> ranked_;
    std::vector<WrongElement> wrong_, wrong_elsewhere_; ///< in rows of `expected`, and in others
};

std::string place(const reference::RowId& row);

/// G1, G2 and the mean error of O.
void judge_o(const FwdJudgeContext& context, Findings& findings, Judgement& judgement);
/// G3.
void judge_lse(const FwdJudgeContext& context, Findings& findings, Judgement& judgement);
/// G5.1 to G5.3, G5.9 and the exact rows of edge fills.
void judge_exactly(const FwdJudgeContext& context, Findings& findings, Judgement& judgement);

} // namespace fmha::harness::detail
