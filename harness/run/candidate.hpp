#pragma once

#include "harness/families/family.hpp"
#include "harness/run/kernel_source.hpp"

#include <string>
#include <vector>

namespace fmha::harness {

/// The kernels that compute a case one after another.
struct Candidate {
    std::vector<StageKernel> stages;    ///< in launch order; as far as a kernel that is not built
    std::vector<KernelFamily> families; ///< of the stages
    std::string chosen; ///< name of the kernel that the candidate is about: `--kernel` finds it by that

    /// Names of all kernels, joined as in CaseResult::kernel.
    std::string name() const;
    /// The stage that is not built; nullptr when all are.
    const StageKernel* not_built() const;
};

/// The dispatcher's choice for each stage of `c`, whose problem is `problem`. Throws the errors of KernelSource::planned.
Candidate planned_candidate(const KernelSource& source, const Family& family, const Case& c,
                            const Problem& problem);

/// Every candidate that differs from the planned one in one stage, and the planned one: each accepting kernel of a stage with
/// the planned kernels of the others, which follow a main kernel that changes. `filter`: a glob on the name of the kernel that
/// changes; empty = all. Throws the errors of KernelSource.
std::vector<Candidate> all_candidates(const KernelSource& source, const Family& family, const Case& c,
                                      const Problem& problem, const std::string& filter);

} // namespace fmha::harness
