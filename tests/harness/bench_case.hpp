#pragma once

#include "harness/bench/bench.hpp"

#include <string>
#include <vector>

namespace fmha::harness::test {

/// Times the kernels of one case, one after the other in this process.
inline std::vector<BenchRow> bench_case(const Case& c, const KernelSource& source, TimingTarget& timing,
                                        const BenchOptions& options) {
    const std::string& arch = timing.target()->arch();
    const PlannedCase planned = plan_case(c, source, arch, options);
    if (planned.refused) return {*planned.refused};
    CaseBench timed(c, arch, timing, options);
    std::vector<BenchRow> rows;
    for (const Candidate& candidate : planned.candidates) rows.push_back(timed.time(candidate));
    return rows;
}

} // namespace fmha::harness::test
