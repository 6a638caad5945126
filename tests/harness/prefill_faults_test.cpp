// Each known mistake, put into the batch prefill program on the host, turns a case of batch_prefill/faults red.

#include "tests/harness/faulty_kernels.hpp"

#include <gtest/gtest.h>

namespace fmha::harness::test {
namespace {

using targets::PrefillFault;

TEST(PrefillFaultSubset, IsSmallAndGreenForACorrectKernel) {
    const auto cases = cases_of("batch_prefill/faults");
    EXPECT_GE(cases.size(), 5U);
    EXPECT_LE(cases.size(), 40U);
    EXPECT_EQ(first_red(cases, launch_with(no_fault<PrefillFault>)), "");
}

class EveryPrefillFault : public testing::TestWithParam<PrefillFault> {};

TEST_P(EveryPrefillFault, IsCaughtByTheSubset) {
    EXPECT_NE(first_red(cases_of("batch_prefill/faults"), launch_with(GetParam())), "")
        << "no case of batch_prefill/faults notices it";
}

INSTANTIATE_TEST_SUITE_P(HostKernel, EveryPrefillFault, testing::ValuesIn(every<PrefillFault>()),
                         [](const auto& fault) { return std::string(to_string(fault.param)); });

} // namespace
} // namespace fmha::harness::test
