#pragma once

#include "harness/run/run_cases.hpp"

#include <vector>

/// Runs of cases on the host target.
namespace fmha::harness::test {

inline std::vector<CaseResult> run(const std::vector<Case>& cases, const KernelSource& source,
                                   const RunOptions& options, Journal* journal = nullptr) {
    const InterruptWatch interrupt;
    return run_cases(cases, source, *make_target("host", {}), options, interrupt, journal);
}

inline std::vector<Outcome> outcomes(const std::vector<CaseResult>& results) {
    std::vector<Outcome> found;
    for (const CaseResult& result : results) found.push_back(result.outcome);
    return found;
}

} // namespace fmha::harness::test
