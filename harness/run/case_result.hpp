#pragma once

#include "harness/cases/case.hpp"
#include "harness/results/result.hpp"
#include "harness/run/waivers.hpp"
#include "harness/run/worker_pool.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/arch/usual_arch.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fmha::harness {

/// Options of the command line of a run that the command to repeat a result needs as well, as they were given; empty: not given.
struct GivenOptions {
    std::string target_flags{}; ///< those that choose the target, each after a space
    std::string catalogue{}; ///< rule set of the list that the cases witness; empty: they are of case files
    std::string arch_dir{}, cases_root{}, where{};
    std::optional<std::chrono::seconds> timeout{}; ///< of a case; 0 = none
};

struct CaseRunOptions {
    std::string arch = arch::usual_arch;
    GivenOptions given{};
    bool all_kernels = false;             ///< every accepting kernel, not only the planned one
    std::string kernel_filter;            ///< glob on kernel names, with all_kernels; empty = all
    std::optional<arch::ArchSet> archs{}; ///< those of `given.arch_dir`
    int repeats = 0;                      ///< 0 = the case's own number
    int warm_up = 0;                      ///< launches beside them
    int reference_threads = 1;            ///< at most; fewer where `memory_limit` is short
    std::int64_t memory_limit = 0;    ///< bytes (of Family::bytes) above which a case is not run; 0 = none
    double work_limit = 0.0;          ///< floating-point operations above which a case is not run; 0 = none
    const Waivers* waivers = nullptr; ///< of the run, which they outlive; null without --waivers
};

/// How often each kernel of a case is launched.
int launches_of(const Case& c, const CaseRunOptions& options);

/// The common content of every result of a case, without an outcome.
CaseResult blank_result(const Case& c);

/// The result of a case that ended without one: its process died or took too long, or it threw.
CaseResult lost_result(const Case& c, const CaseRunOptions& options, const TaskEnd& end);

/// The results that a worker sent for a case. A worker whose answer cannot be read has crashed: a kernel wrote over its memory.
std::vector<CaseResult> answered(const Case& c, const CaseRunOptions& options, const TaskEnd& end);

/// The result of a case that a run did not finish: `interrupted` or `after_failure`.
CaseResult unfinished_result(const Case& c, const CaseRunOptions& options, NotRunReason reason);

/// Shell command that repeats one result.
std::string reproducing_command(const Case& c, const CaseRunOptions& options, const std::string& kernel);

} // namespace fmha::harness
