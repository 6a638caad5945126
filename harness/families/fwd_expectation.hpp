#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/data/fwd_tensors.hpp"
#include "harness/families/family.hpp"
#include "reference/forward.hpp"

#include <optional>
#include <vector>

namespace fmha::harness {

/// The rows that the reference computes for a case: a sample when the case asks for one.
std::vector<reference::RowId> expected_rows(const Case& c, const FwdArgs& args);

/// The reference of a forward case and the gates on its one stage.
class FwdExpectation final : public CaseExpectation {
  public:
    /// `tensors` must outlive this.
    FwdExpectation(const FwdTensors& tensors, int threads);

    /// On every row of a small case and on evenly spread rows of a large one. 0 for the fill `huge`, whose sums no two
    /// orders agree on.
    double oracle_disagreement() override;
    StageVerdict judge(KernelFamily stage, const Outputs& outputs, const Numerics& numerics,
                       bool data_of_fill) override;

  private:
    const reference::ForwardRows& for_numerics(const Numerics& numerics);

    const FwdTensors& tensors_;
    FwdArgs args_;
    int threads_;
    std::vector<reference::RowId> rows_;
    std::optional<reference::ForwardRows> expected_; ///< of the numerics that were asked for last
};

} // namespace fmha::harness
