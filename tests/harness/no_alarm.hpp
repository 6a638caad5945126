#pragma once

#include "harness/cases/case_problem.hpp"
#include "harness/run/fwd_runner.hpp"
#include "tests/harness/kernels_for_tests.hpp"
#include "tests/harness/random_case.hpp"

#include <gtest/gtest.h>

namespace fmha::harness::test {

/// Runs problems first … first + count − 1 and reports every alarm with its report.
inline void expect_no_alarm(std::uint64_t first, std::uint64_t count) {
    const FittingHostKernel source;
    std::uint64_t executed = 0;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        const FwdCase c = random_case(seed);
        for (const CaseResult& result : run_fwd_case(c, source, {})) {
            executed += result.outcome == Outcome::passed ? 1 : 0;
            EXPECT_EQ(result.outcome, Outcome::passed)
                << "seed " << seed << ": " << to_string(result.outcome) << ": " << result.message << "\n  "
                << result.pattern << "\n  " << to_problem(c, "gfx950").to_string();
        }
    }
    EXPECT_EQ(executed, count);
}

} // namespace fmha::harness::test
