// Each known mistake, put into the append-KV program on the host, turns a case of appendkv/faults red.

#include "tests/harness/faulty_kernels.hpp"

#include <gtest/gtest.h>

namespace fmha::harness::test {
namespace {

using targets::AppendFault;

TEST(AppendFaultSubset, IsSmallAndGreenForACorrectKernel) {
    const auto cases = cases_of("appendkv/faults");
    EXPECT_GE(cases.size(), 5U);
    EXPECT_LE(cases.size(), 40U);
    EXPECT_EQ(first_red(cases, launch_with(no_fault<AppendFault>)), "");
}

class EveryAppendFault : public testing::TestWithParam<AppendFault> {};

TEST_P(EveryAppendFault, IsCaughtByTheSubset) {
    EXPECT_NE(first_red(cases_of("appendkv/faults"), launch_with(GetParam())), "")
        << "no case of appendkv/faults notices it";
}

INSTANTIATE_TEST_SUITE_P(HostKernel, EveryAppendFault, testing::ValuesIn(every<AppendFault>()),
                         [](const auto& fault) { return std::string(to_string(fault.param)); });

} // namespace
} // namespace fmha::harness::test
