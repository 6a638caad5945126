// Green must be earned: each known mistake, put into the host kernel, turns a case of the subset fwd/faults red. The
// table names the first case and gate that caught it.

#include "harness/cases/load.hpp"
#include "harness/run/case_runner.hpp"
#include "tests/harness/faulty_forward.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fmha::harness::test {
namespace {

using host_target::Fault;

const std::vector<Case>& subset() {
    static const auto cases = load_cases({"fwd/faults"}, {.root = FMHA_CASES_DIR});
    return cases;
}

TEST(FaultSubset, IsSmallAndGreenForACorrectKernel) {
    EXPECT_LE(subset().size(), 40U);
    for (const auto& c : subset())
        for (const auto& result : run_case(c, FittingHostKernel(), {}))
            EXPECT_EQ(result.outcome, Outcome::passed) << c.id << ": " << result.message;
}

class EveryFault : public testing::TestWithParam<Fault> {};

TEST_P(EveryFault, IsCaughtByTheSubset) {
    const FaultyForward source(GetParam());
    for (const auto& c : subset())
        for (const auto& result : run_case(c, source, {})) {
            if (result.outcome == Outcome::passed) continue;
            ASSERT_TRUE(result.outcome == Outcome::failed || result.outcome == Outcome::mistrusted)
                << to_string(result.outcome) << ": " << result.message;
            const auto* gate = result.first_failure();
            const auto caught_by =
                gate != nullptr ? fmt::format("{} {}", gate->gate, gate->tensor) : result.message;
            fmt::print("{:26} caught by {:12} of {}\n", to_string(GetParam()), caught_by, c.id);
            RecordProperty("case", c.id);
            RecordProperty("gate", caught_by);
            return;
        }
    FAIL() << "no case of fwd/faults notices " << to_string(GetParam());
}

std::vector<Fault> all_faults() {
    std::vector<Fault> faults;
    for (const auto& info : host_target::fault_catalogue()) faults.push_back(info.fault);
    return faults;
}

INSTANTIATE_TEST_SUITE_P(HostKernel, EveryFault, testing::ValuesIn(all_faults()),
                         [](const auto& fault) { return std::string(to_string(fault.param)); });

} // namespace
} // namespace fmha::harness::test
