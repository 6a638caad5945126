// Each known mistake, put into one of the kernels of backward on the host, turns a case of bwd/faults red.

#include "tests/harness/faulty_kernels.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace fmha::harness::test {
namespace {

using targets::BackwardFault;

TEST(BackwardFaultSubset, IsSmallAndGreenForCorrectKernels) {
    const auto cases = cases_of("bwd/faults");
    EXPECT_GE(cases.size(), 4U);
    EXPECT_LE(cases.size(), 40U);
    EXPECT_EQ(first_red(cases, launch_with(no_fault<BackwardFault>), "gfx942"), "");
}

class EveryBackwardFault : public testing::TestWithParam<BackwardFault> {};

TEST_P(EveryBackwardFault, IsCaughtByTheSubset) {
    EXPECT_NE(first_red(cases_of("bwd/faults"), launch_with(GetParam()), "gfx942"), "")
        << "no case of bwd/faults notices it";
}

INSTANTIATE_TEST_SUITE_P(HostKernel, EveryBackwardFault, testing::ValuesIn(every<BackwardFault>()),
                         [](const auto& fault) { return std::string(to_string(fault.param)); });

/// Lines of tests/hip_target/faults_backward.txt: a mistake, and the case that notices it on Hopper. gpu_faults.sh runs them on
/// a GPU.
std::vector<std::pair<std::string, std::string>> table() {
    std::ifstream file(FMHA_FAULTS_FILE);
    std::vector<std::pair<std::string, std::string>> rows;
    for (std::string fault, name; file >> fault >> name;) rows.emplace_back(fault, name);
    return rows;
}

TEST(BackwardFaultTable, HasEveryFaultOnceWithACaseThatNoticesIt) {
    const auto rows = table();
    ASSERT_EQ(rows.size(), EnumTable<BackwardFault>::names.size());
    for (std::size_t n = 0; n < rows.size(); ++n) {
        const auto& [fault, name] = EnumTable<BackwardFault>::names[n];
        EXPECT_EQ(rows[n].first, name);
        EXPECT_NE(first_red(cases_of(rows[n].second), launch_with(fault), "sm_90"), "")
            << rows[n].second << " does not notice " << name;
    }
}

} // namespace
} // namespace fmha::harness::test
