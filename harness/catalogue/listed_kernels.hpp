#pragma once

#include "dispatcher/dispatcher.hpp"
#include "dispatcher/registry/registry.hpp"
#include "harness/catalogue/witness.hpp"
#include "harness/run/targets.hpp"

#include <map>
#include <memory>
#include <span>
#include <vector>

namespace fmha::harness {

/// The kernels of a list, each for the problem of its witness alone. The other stages of a plan have kernels that the dispatcher
/// chooses from the same list.
class ListedKernels final : public KernelSource {
  public:
    /// `all`: the witnesses of the whole list; `asked`: those that are run, possibly for fewer kernels. `list` must outlive it.
    /// Throws Error when two witnesses have the same problem.
    ListedKernels(std::span<const ListedKernel> list, std::span<const Witness> all,
                  std::span<const Witness> asked, std::shared_ptr<const Target> target);

    StageKernel planned(const Problem& problem, const KernelConfig* main) const override;
    /// Throws ProblemRefused when the witness's kernels do not take the problem; those that the target cannot execute are
    /// handed out as not built, with its reason. None for a stage that `problem` witnesses for no kernel.
    std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const override;

  private:
    StageKernel stage_kernel(std::size_t position) const;

    std::span<const ListedKernel> list_;
    std::shared_ptr<const Target> target_;
    std::map<Problem, std::vector<std::size_t>> witnessed_; ///< by the problem of a stage
    Registry others_; ///< kernels of APIs with several stages, which no rule forbids
    Dispatcher dispatcher_;
    std::map<KernelConfig, std::size_t> positions_; ///< of the kernels in others_
};

} // namespace fmha::harness
