#pragma once

#include "harness/data/bwd_tensors.hpp"
#include "harness/families/family.hpp"
#include "reference/backward.hpp"

#include <optional>

namespace fmha::harness {

/// The kernels of a backward case, as far as its judgement depends on them.
struct BackwardKernels {
    bool direct = false;       ///< the main kernel stores dQ
    std::int64_t dq_parts = 1; ///< partial sums of which dQ consists, at most
};

/// Puts the results of forward for the case into the memory of "o" and "lse", rounded to their types.
void store_forward_results(const BwdTensors& tensors);

/// The gradients of the case that are computed: of all rows and keys, or of a sample.
reference::GradientRequest gradient_request(const BwdTensors& tensors);

/// The forward problem whose outputs the backward one takes.
FwdArgs forward_before(const BwdArgs& args);

/// The reference of a backward case and the gates on its stages.
class BwdExpectation final : public CaseExpectation {
  public:
    /// `tensors` and `kernels`, which a case changes with its candidate, must outlive this.
    BwdExpectation(const BwdTensors& tensors, const BackwardKernels& kernels, int threads);

    /// On every row and key of a small case and on evenly spread ones of a large one. Where the case runs forward, on what the
    /// reference computes in its place.
    double oracle_disagreement() override;
    StageVerdict judge(KernelFamily stage, const Outputs& outputs, const Numerics& numerics,
                       InputOrigin inputs) override;
    void each_bounded(KernelFamily stage, const Outputs& outputs,
                      const std::function<void(const Bounded&)>& visit) override;

  private:
    const reference::Gradients& gradients(const Numerics& numerics);

    const BwdTensors& tensors_;
    const BackwardKernels& kernels_;
    BwdArgs args_;
    int threads_;
    reference::GradientRequest request_;
    std::optional<reference::Gradients> expected_; ///< of the main kernel that was judged last
    std::int64_t parts_ = 0;                       ///< for which they were computed
    std::optional<reference::Gradients> row_sums_; ///< of the first stage that was judged last
};

} // namespace fmha::harness
