#pragma once

#include "harness/cases/relative_text.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/targets.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

/// Random problems against the reference.
namespace fmha::harness {

struct FuzzOptions {
    std::vector<Case> plain{};             ///< of the families, which take turns
    std::uint64_t seed = 0;                ///< of the run
    std::size_t most = 0;                  ///< problems; 0 = as many as there is time for
    std::chrono::milliseconds patience{0}; ///< of the whole run; 0 = no end
    std::chrono::milliseconds timeout{0};  ///< of one problem; 0 = none
    int jobs = 1;
    CaseRunOptions of_case{};
    TilePlanner planned_tile{};
    std::function<bool()> stop{}; ///< asked several times a second
};

/// The fate of the problems. `generated` is the sum of all others.
struct FuzzCounts {
    std::int64_t generated = 0;
    std::int64_t executed = 0; ///< judged by the gates, the red ones among them
    std::int64_t red = 0;      ///< of the executed
    std::map<std::string, std::int64_t>
        refused{}; ///< by the rule that the problem breaks or the feature that its nearest kernel lacks
    std::map<std::string, std::int64_t> not_run{};     ///< by reason
    std::map<std::string, std::int64_t> executed_of{}; ///< by family
    std::set<std::string> kernels{};

    std::int64_t all_refused() const;
    std::int64_t all_not_run() const;
};

/// Problem `n` of a run. The same options give the same problem on every machine and for every number of processes.
Case fuzz_case(const FuzzOptions& options, std::size_t n);

/// Is told, in the process that called `fuzz`, the number and the result of every problem.
using FuzzListener = std::function<void(std::size_t n, const CaseResult& result)>;

/// Runs random problems in worker processes until the time or the number is up, or `stop` says so.
FuzzCounts fuzz(const KernelSource& source, const Target& target, const FuzzOptions& options,
                const FuzzListener& on_end);

} // namespace fmha::harness
