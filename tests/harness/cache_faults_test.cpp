// Each known mistake in where keys are looked for, or which split has them, put into the programs over a cache on the host, turns
// a case of pagedkv/faults and of splitkv/faults red.

#include "tests/harness/faulty_kernels.hpp"

#include <gtest/gtest.h>

namespace fmha::harness::test {
namespace {

using targets::CacheFault;

TEST(CacheFaultSubsets, AreSmallAndGreenForCorrectKernels) {
    for (const char* file : {"pagedkv/faults", "splitkv/faults"}) {
        const auto cases = cases_of(file);
        EXPECT_GE(cases.size(), 5U) << file;
        EXPECT_LE(cases.size(), 40U) << file;
        EXPECT_EQ(first_red(cases, launch_with(no_fault<CacheFault>)), "");
    }
}

class EveryCacheFault : public testing::TestWithParam<CacheFault> {};

TEST_P(EveryCacheFault, IsCaughtByTheSubsets) {
    const auto launch = launch_with(GetParam());
    EXPECT_NE(first_red(cases_of("splitkv/faults"), launch), "") << "no case of splitkv/faults notices it";
    const bool of_splits =
        GetParam() >= CacheFault::split_edge_late || GetParam() == CacheFault::cache_slot_ignored;
    if (of_splits) return; // paged-KV has neither splits nor slots
    EXPECT_NE(first_red(cases_of("pagedkv/faults"), launch), "") << "no case of pagedkv/faults notices it";
}

INSTANTIATE_TEST_SUITE_P(HostKernel, EveryCacheFault, testing::ValuesIn(every<CacheFault>()),
                         [](const auto& fault) { return std::string(to_string(fault.param)); });

} // namespace
} // namespace fmha::harness::test
