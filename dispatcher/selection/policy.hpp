#pragma once

#include "dispatcher/registry/registry.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fmha {

/// A kernel that takes a stage, with the numbers that ranked it.
struct RankedKernel {
    const KernelEntry* entry = nullptr; ///< valid as long as the snapshot
    std::vector<std::int64_t> criteria; ///< one for each of `SelectionPolicy::criteria()`
};

/// Chooses one kernel for a stage of a problem out of a snapshot. Const operations are safe to call
/// concurrently. The order must be total and must not depend on the order of registration.
class SelectionPolicy {
  public:
    virtual ~SelectionPolicy() = default;
    virtual std::string_view name() const = 0;
    /// Names of the numbers that rank kernels, most significant first.
    virtual std::span<const std::string_view> criteria() const = 0;
    /// The best kernel, null when none takes the stage.
    virtual const KernelEntry* select(const Snapshot& kernels, const StageQuery& query) const = 0;
    /// Every kernel that takes the stage, best first; `select` returns the first.
    virtual std::vector<RankedKernel> rank(const Snapshot& kernels, const StageQuery& query) const = 0;
};

/// Everything that a score may use besides the kernel itself.
struct ScoreContext {
    /// Largest tile_m0 among the accepted kernels of the same pair of head dimensions.
    std::int64_t largest_tile_m0 = 0;
};

/// Smaller is better, compared from the front.
using Score = std::array<std::int64_t, 6>;

/// A policy that is one scoring function. Under any score, only kernels of the smallest accepting
/// pair (hdim_q, hdim_v) compete in `select`, and the configuration itself breaks ties.
class ScorePolicy : public SelectionPolicy {
  public:
    virtual Score score(const StageQuery& query, const RankingFacts& kernel,
                        const ScoreContext& context) const = 0;

    const KernelEntry* select(const Snapshot& kernels, const StageQuery& query) const final;
    std::vector<RankedKernel> rank(const Snapshot& kernels, const StageQuery& query) const final;
};

/// The default (dispatcher-api 8.3): (hdim_q, hdim_v, category, selection_rank, tile_m0, surplus
/// capabilities), then the configuration.
class SeqTunePolicy final : public ScorePolicy {
  public:
    std::string_view name() const override { return "seqtune"; }
    std::span<const std::string_view> criteria() const override;
    Score score(const StageQuery& query, const RankingFacts& kernel,
                const ScoreContext& context) const override;
};

} // namespace fmha
