// Each known mistake, put into one of the kernels of backward on the host, turns a case of bwd/faults red.

#include "tests/harness/faulty_kernels.hpp"

#include <gtest/gtest.h>

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

} // namespace
} // namespace fmha::harness::test
