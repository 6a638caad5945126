#pragma once

#include "dispatcher/plan/plan.hpp"
#include "dispatcher/selection/policy.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fmha {

/// The properties of a device that planning has to know.
struct Device {
    ArchName arch;
    std::int64_t compute_units = 0;
    int wave_size = 64;
};

/// Returns identifiers of kernels to prefer, best first (dispatcher-api 8.4).
using Heuristic = std::function<std::vector<std::string>(const Problem&)>;

/// Selects kernels and makes plans over one registry, which must outlive it. Const operations may be called
/// concurrently, also while others register kernels; the setters may not.
class Dispatcher {
  public:
    explicit Dispatcher(const Registry& registry, std::vector<Device> devices = {});

    void set_policy(std::shared_ptr<const SelectionPolicy> policy);
    const SelectionPolicy& policy() const { return *policy_; }
    /// From now on the heuristic is asked first; an empty function restores first-fit. A heuristic may ask the dispatcher that asks
    /// it, which answers as it would without one.
    void set_heuristic(Heuristic heuristic);
    SelectionStrategy strategy() const {
        return heuristic_ ? SelectionStrategy::heuristic : SelectionStrategy::first_fit;
    }
    const Registry& registry() const { return *registry_; }

    /// The kernel for the stage `problem.signature.family`; null for a valid problem that no kernel takes.
    /// Throws ProblemError for an invalid problem and HeuristicError when the heuristic throws.
    std::shared_ptr<const KernelEntry> select_kernel(const Problem& problem) const;

    /// Every stage of the problem's API. Throws as `select_kernel` does; a plan without all its stages says
    /// which are missing.
    ExecutionPlan plan(const Problem& problem) const;
    /// The same over a snapshot that the caller holds, so that several answers speak of one state.
    ExecutionPlan plan(const Problem& problem, const std::shared_ptr<const Snapshot>& kernels) const;

    /// A plan of one stage with exactly this kernel. Throws NoKernelFound for an identifier that is not registered
    /// and UnsupportedInvocation, with the failing condition, when the kernel does not take the problem.
    ExecutionPlan plan_one(std::string_view identifier, const Problem& problem) const;

    /// Identifiers of the kernels that the heuristic prefers for this problem, best first; none without a heuristic, and
    /// none within it. Throws HeuristicError.
    std::vector<std::string> preferred(const Problem& problem) const;

    /// The problem with the architecture's compute units and the number of splits filled in.
    Problem resolved(const Problem& problem) const;
    /// What that number of splits follows from, where the problem leaves it to the plan.
    SplitChoice choice_of_splits(const Problem& problem) const;

  private:
    const Device* device_of(const Problem& problem) const;
    const KernelEntry* choose(const Snapshot& kernels, const StageQuery& query, const Problem& problem) const;

    const Registry* registry_;
    std::vector<Device> devices_;
    std::shared_ptr<const SelectionPolicy> policy_;
    Heuristic heuristic_;
};

} // namespace fmha
