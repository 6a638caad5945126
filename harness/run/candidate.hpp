#pragma once

#include "harness/cases/cache_case.hpp"
#include "harness/run/kernel_source.hpp"

#include <span>
#include <string>
#include <vector>

namespace fmha::harness {

/// The kernels that compute a case one after another.
struct Candidate {
    std::vector<StageKernel> stages;    ///< in launch order; as far as a kernel that is not built
    std::vector<KernelFamily> families; ///< of the stages
    std::string chosen; ///< name of the kernel that the candidate is about: `--kernel` finds it by that

    /// Names of all kernels, joined by " + ".
    std::string name() const;
    /// The stage that is not built; nullptr when all are.
    const StageKernel* not_built() const;
};

/// RoPE of a chain, which is part of append-KV and of no problem of attention.
struct Rotation {
    Rope rope = Rope::none;
    std::int64_t rotary_dim = 0;
    static Rotation of(const Case& c) { return {c.append.rope, rotary_dim_of(c)}; }
};

/// The problem that `stage` solves as a part of `problem`. A stage of another API is forward before backward, which stores O and
/// LSE for it, or append-KV before attention, which adds keys to the cache and has queries where it rotates them.
Problem problem_of_stage(Problem problem, KernelFamily stage, const Rotation& rotation = {});

/// The dispatcher's choice for each of `stages`. Throws what KernelSource::planned throws.
Candidate planned_candidate(const KernelSource& source, const Problem& problem,
                            std::span<const KernelFamily> stages, const Rotation& rotation = {});

/// Every candidate that differs from the planned one in one stage, and the planned one: each accepting kernel of a stage with
/// the planned kernels of the others, which follow a main kernel that changes. `filter`: a glob on the name of the kernel that
/// changes; empty = all. Throws what KernelSource throws.
std::vector<Candidate> all_candidates(const KernelSource& source, const Problem& problem,
                                      std::span<const KernelFamily> stages, const std::string& filter,
                                      const Rotation& rotation = {});

} // namespace fmha::harness
