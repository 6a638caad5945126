// Each known mistake, put into the combine program on the host, turns a case of splitkv/combine_faults red.

#include "tests/harness/faulty_kernels.hpp"

#include <gtest/gtest.h>

namespace fmha::harness::test {
namespace {

using targets::CombineFault;

TEST(CombineFaultSubset, IsSmallAndGreenForACorrectKernel) {
    const auto cases = cases_of("splitkv/combine_faults");
    EXPECT_GE(cases.size(), 5U);
    EXPECT_LE(cases.size(), 40U);
    EXPECT_EQ(first_red(cases, launch_with(no_fault<CombineFault>)), "");
}

class EveryCombineFault : public testing::TestWithParam<CombineFault> {};

TEST_P(EveryCombineFault, IsCaughtByTheSubset) {
    EXPECT_NE(first_red(cases_of("splitkv/combine_faults"), launch_with(GetParam())), "")
        << "no case of splitkv/combine_faults notices it";
}

INSTANTIATE_TEST_SUITE_P(HostKernel, EveryCombineFault, testing::ValuesIn(every<CombineFault>()),
                         [](const auto& fault) { return std::string(to_string(fault.param)); });

} // namespace
} // namespace fmha::harness::test
