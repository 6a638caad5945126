// Timing on a device whose device is the processor: places, outputs that come back, and ceilings.

#include "harness/bench/bench.hpp"
#include "harness/bench/bench_run.hpp"
#include "harness/bench/matrix_loop.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "tests/dispatcher/c/built_folder.hpp"
#include "tests/dispatcher/c/fake_plugin.hpp"
#include "tests/harness/bench_case.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <unistd.h>

namespace fmha::harness::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class HipTimingTest : public testing::Test {
  protected:
    HipTimingTest() {
        fmha::test::write_built_folder(folder_);
        // No compiler is where this looks, so that there is no matrix loop to load into the fake device.
        setenv("PATH", "", 1);
    }
    HipTimingTest(const HipTimingTest&) = delete;
    HipTimingTest& operator=(const HipTimingTest&) = delete;
    ~HipTimingTest() override { fs::remove_all(folder_); }

    static Case case_of(std::int64_t hdim) {
        Case c;
        c.id = "test/device@1";
        c.data_type = DataType::fp32;
        c.hdim_q = c.hdim_v = hdim;
        c.seqlen_q = c.seqlen_k = {40};
        return c;
    }
    std::vector<BenchRow> bench(std::int64_t hdim) const {
        const auto timing = time_on_hip({.arch = "", .kernels_dir = folder_.string()});
        const auto source = house_kernels(timing->target());
        return bench_case(case_of(hdim), *source, *timing, {.seconds = 1e-3, .kernel_filter = {}});
    }

    fmha::test::FakePlugin device_;
    fs::path folder_ = fs::temp_directory_path() / ("fmha_bench_hip." + std::to_string(getpid()));
};

TEST_F(HipTimingTest, JudgesAndTimesInSeveralPlaces) {
    const auto rows = bench(32);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].outcome, BenchOutcome::measured) << rows[0].message;
    EXPECT_THAT(rows[0].kernel, HasSubstr("fwd_gfx942_fp32_batch_h32x32"));
    EXPECT_GT(rows[0].places, 10) << "its few kilobytes must exceed the cache of a megabyte";
    EXPECT_EQ(rows[0].time.median, 1e-3) << "what the fake events say";
    EXPECT_TRUE(rows[0].copy.known());
}

TEST_F(HipTimingTest, OneProcessPlansAndTimes) {
    const TargetOptions options{.arch = "", .kernels_dir = folder_.string()};
    const auto target = make_target("hip", options);
    const std::vector<Case> cases{case_of(32)};
    const auto source = house_kernels(target);
    std::vector<BenchOutcome> outcomes;
    BenchRun run{.cases = cases, .source = *source, .arch = target->arch(), .timing = [&] {
                     return time_on_hip(options);
                 }};
    run.options = {.seconds = 1e-3, .kernel_filter = {}};
    run.workers = 0;
    bench_cases(run, nullptr, [&](std::size_t, const BenchRow& row) { outcomes.push_back(row.outcome); });
    EXPECT_THAT(outcomes, testing::ElementsAre(BenchOutcome::measured));
}

TEST_F(HipTimingTest, AKernelThatIsNotBuiltHasNoTime) {
    const auto rows = bench(64);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].outcome, BenchOutcome::not_run);
    EXPECT_THAT(rows[0].message, HasSubstr("fmha build"));
}

TEST_F(HipTimingTest, AFailedLaunchIsARowThatSaysSo) {
    device_.refuse("launch");
    const auto rows = bench(32);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].outcome, BenchOutcome::not_run);
    EXPECT_THAT(rows[0].message, HasSubstr("refused by the test"));
}

TEST(MatrixLoop, MultipliesWithTheLargestInstructionOfTheType) {
    EXPECT_THAT(matrix_loop_source("sm_90", ElementType::bf16), HasSubstr("mma_16x8x16_bf16)"));
    EXPECT_THAT(matrix_loop_source("sm_90", ElementType::fp32), HasSubstr("mma_16x8x8_tf32)"));
    EXPECT_THAT(matrix_loop_source("gfx942", ElementType::fp8_fnuz), HasSubstr("mfma_32x32x16_fp8)"));
    EXPECT_THAT(matrix_loop_source("gfx950", ElementType::fp16), HasSubstr("mfma_32x32x16_f16)"));
    EXPECT_THAT(matrix_loop_source("gfx950", ElementType::fp8_ocp), HasSubstr("mfma_32x32x64_fp8)"));
    EXPECT_THAT(matrix_loop_source("gfx950", ElementType::bf8_ocp), HasSubstr("mfma_32x32x64_bf8)"));
    EXPECT_THROW(matrix_loop_source("gfx1100", ElementType::fp32), Error);
}

} // namespace
} // namespace fmha::harness::test
