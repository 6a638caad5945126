#pragma once

#include "dispatcher/selection/policy.hpp"
#include "dispatcher/upstream/chain.hpp"

#include <map>

namespace fmha::upstream {

/// A problem of ours in upstream's terms, for comparing choices. Upstream's scalars in group mode are the
/// largest lengths; the load mode follows the size of the page pool.
Problem from_problem(const fmha::Problem& problem);

/// Selection as upstream's generated API would do it, over a registry that holds rule set `ck` for the
/// problem's architecture (`catalogue`). The kernel that the chain names is taken if it is registered.
class CkPolicy final : public SelectionPolicy {
  public:
    /// Builds the chains of `names` at once, so that selecting is const and concurrent.
    CkPolicy(const arch::ArchSet& archs, std::span<const ArchName> names);

    std::string_view name() const override { return "ck"; }
    std::span<const std::string_view> criteria() const override;
    const KernelEntry* select(const Snapshot& kernels, const StageQuery& query) const override;
    std::vector<RankedKernel> rank(const Snapshot& kernels, const StageQuery& query) const override;

  private:
    std::map<ArchName, Chain> chains_;
};

} // namespace fmha::upstream
