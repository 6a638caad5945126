#pragma once

#include "harness/families/family.hpp"
#include "harness/results/result.hpp"
#include "harness/run/candidate.hpp"
#include "harness/run/kernel_source.hpp"
#include "harness/run/worker_pool.hpp"
#include "kernels/arch/arch.hpp"

#include <optional>
#include <string>
#include <vector>

namespace fmha::harness {

struct CaseRunOptions {
    std::string arch = "gfx950";
    std::string target_flags;  ///< what chooses the target, for the command that reproduces a result
    bool all_kernels = false;  ///< every accepting kernel, not only the planned one
    std::string kernel_filter; ///< glob on kernel names, with all_kernels; empty = all
    std::string where;         ///< the filter of the kernel source, for the command that reproduces a result
    std::string
        catalogue; ///< rule set of the list that the cases witness, for the same command; empty = case files
    std::string cases_root; ///< for the same command, when it is not the usual one
    std::string arch_dir;   ///< for the same command, when it is given; `archs` are its architectures
    std::optional<arch::ArchSet> archs{};
    int repeats = 0; ///< 0 = the case's own number
    int reference_threads = 1;
    std::int64_t memory_limit = 0; ///< bytes (of Family::bytes) above which a case is not run; 0 = none
    double work_limit = 0.0;       ///< floating-point operations above which a case is not run; 0 = none
};

/// Runs one case: problem, kernels, reference, gates. One result a candidate, or a single result that says why no kernel ran.
/// Unless the case asks for one run, every candidate runs at least twice, over different contents of all memory that must
/// not matter, and the outputs must be identical (G5.6, G5.7). Both oracles must agree on the case (on a sample of its rows when
/// it is large) before either is believed. Throws InputError for a case that cannot be laid out; failures of
/// kernels are results, not exceptions.
std::vector<CaseResult> run_case(const Case& c, const KernelSource& source, const CaseRunOptions& options);
/// The same for a case of `family`, in place of the family that the case names.
std::vector<CaseResult> run_case(const Family& family, const Case& c, const KernelSource& source,
                                 const CaseRunOptions& options);

/// Judges outputs that are already in `data`, written by kernels that declare `numerics`, with the gates that need no second
/// run. Outputs that are not exchanged are left out.
CaseResult judge_given_outputs(const Case& c, CaseData& data, const Numerics& numerics);
/// The same with an expectation that was made before the outputs came, for families that update inputs in place.
CaseResult judge_given_outputs(const Case& c, CaseData& data, CaseExpectation& expectation,
                               const Numerics& numerics);

/// Judges the outputs that the kernels of `candidate` have written into `data`, all stages, with the same gates.
CaseResult judge_run_outputs(const Case& c, CaseData& data, CaseExpectation& expectation,
                             const Candidate& candidate);

/// The result of a case that ended without one: its process died or took too long, or it threw.
CaseResult lost_result(const Case& c, const CaseRunOptions& options, const TaskEnd& end);

/// The result of a case that a run did not finish: `interrupted` or `after_failure`.
CaseResult unfinished_result(const Case& c, const CaseRunOptions& options, NotRunReason reason);

/// Shell command that repeats one result.
std::string reproducing_command(const Case& c, const CaseRunOptions& options, const std::string& kernel);

} // namespace fmha::harness
