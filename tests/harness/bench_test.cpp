// The statements of a benchmark: the amount of a problem's work, and that a wrong kernel has no speed.

#include "dispatcher/types/error.hpp"
#include "harness/bench/bench.hpp"
#include "harness/data/fwd_tensors.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "reference/attention.hpp"
#include "tests/harness/bench_case.hpp"
#include "tests/harness/faulty_kernels.hpp"
#include "tests/harness/gate_support.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <random>

namespace fmha::harness::test {
namespace {

using testing::HasSubstr;

Work work_of_case(const Case& c) {
    const FwdTensors tensors(c, Fp8Flavour::ocp);
    return work_of(reference::attention_of(tensors.args()));
}

TEST(WorkOf, CountsPairsFlopsAndBytes) {
    Case c;
    c.data_type = DataType::bf16;
    c.batch = 2;
    c.nhead_q = 4;
    c.nhead_k = 2;
    c.seqlen_q = {3};
    c.seqlen_k = {5};
    c.hdim_q = 16;
    c.hdim_v = 8;
    c.lse = true;
    Work work = work_of_case(c);
    EXPECT_EQ(work.visible_pairs, 2 * 4 * 3 * 5);
    EXPECT_EQ(work.flops, 2.0 * (16 + 8) * 2 * 4 * 3 * 5);
    EXPECT_EQ(work.bytes, 2.0 * (2 * (4 * 3 * 16 + 2 * 5 * 16 + 2 * 5 * 8 + 4 * 3 * 8) + 4 * 4 * 3));
    c.mask = MaskType::top_left;
    c.window_right = 0;
    EXPECT_EQ(work_of_case(c).visible_pairs, 2 * 4 * (1 + 2 + 3));
    c.mask = MaskType::bottom_right;
    EXPECT_EQ(work_of_case(c).visible_pairs, 2 * 4 * (3 + 4 + 5));
}

TEST(WorkOf, AgreesWithTheMaskOnEveryPair) {
    std::mt19937 random(7);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
    for (int n = 0; n < 200; ++n) {
        Case c;
        c.hdim_q = c.hdim_v = 8;
        c.batch = c.nhead_q = c.nhead_k = 1;
        c.seqlen_q = {pick(1, 9)};
        c.seqlen_k = {pick(1, 9)};
        c.mask = pick(0, 1) == 0 ? MaskType::top_left : MaskType::bottom_right;
        c.window_left = pick(-1, 5);
        c.window_right = pick(-1, 5);
        c.sink_size = c.window_left >= 0 ? pick(0, 3) : 0;
        const FwdTensors tensors(c, Fp8Flavour::ocp);
        const FwdArgs args = tensors.args();
        std::int64_t pairs = 0;
        for (std::int64_t i = 0; i < args.shape.seqlen_q; ++i)
            for (std::int64_t j = 0; j < args.shape.seqlen_k; ++j)
                pairs += reference::key_visible(args, 0, i, j);
        EXPECT_EQ(work_of(reference::attention_of(args)).visible_pairs, static_cast<double>(pairs))
            << "sq " << args.shape.seqlen_q << " sk " << args.shape.seqlen_k << " left " << c.window_left
            << " right " << c.window_right << " sinks " << c.sink_size;
    }
}

TEST(Spread, IsMedianAndQuartiles) {
    const Spread spread = spread_of({5.0, 1.0, 4.0, 2.0, 3.0});
    EXPECT_EQ(spread.median, 3.0);
    EXPECT_EQ(spread.low, 2.0);
    EXPECT_EQ(spread.high, 4.0);
    EXPECT_EQ(spread.samples, 5);
    EXPECT_EQ(spread_of({1.0, 2.0}).median, 1.5);
    EXPECT_EQ(spread_of({}).samples, 0);
}

TEST(Places, ExceedTheCache) {
    EXPECT_EQ(places_beyond(50'000'000, 30'000'000), 4);
    EXPECT_EQ(places_beyond(50'000'000, 1'000'000'000), 2);
    EXPECT_EQ(places_beyond(50'000'000, 100), 1024);
}

std::vector<BenchRow> bench(const KernelSource& source) {
    const auto timing = time_on_host({});
    return bench_case(small_case(), source, *timing, {.seconds = 0.01, .kernel_filter = {}});
}

TEST(Bench, ARightKernelIsTimed) {
    const auto rows = bench(FittingHostKernel());
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].outcome, BenchOutcome::measured) << rows[0].message;
    EXPECT_GE(rows[0].time.samples, 5);
    EXPECT_GT(rows[0].time.median, 0.0);
    EXPECT_LE(rows[0].time.low, rows[0].time.median);
    EXPECT_EQ(rows[0].work.flops, 2.0 * 2 * 2 * 70 * 90 * 128);
    EXPECT_TRUE(rows[0].matrix.known());
    EXPECT_TRUE(rows[0].copy.known());
    EXPECT_THAT(to_text(rows[0]), HasSubstr("TFLOP/s ("));
    EXPECT_EQ(to_json(rows[0]).at("flops"), rows[0].work.flops);
}

TEST(Bench, AWrongKernelIsWrongAndNotFast) {
    const auto rows = bench(
        SpoiledKernel([](const FwdArgs& args) { static_cast<std::uint16_t*>(args.o.data)[5] ^= 0x4000; }));
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].outcome, BenchOutcome::wrong);
    EXPECT_THAT(rows[0].message, HasSubstr("G1"));
    EXPECT_EQ(rows[0].time.samples, 0);
    EXPECT_EQ(rows[0].flops_per_second(), 0.0);
    EXPECT_THAT(to_text(rows[0]), HasSubstr("WRONG: G1"));
    EXPECT_FALSE(to_json(rows[0]).contains("seconds"));
}

TEST(Bench, AKernelThatGoesWrongWhileItIsTimedIsSeen) {
    int launches = 0;
    const auto rows = bench(SpoiledKernel([&launches](const FwdArgs& args) {
        if (++launches > 4) static_cast<std::uint16_t*>(args.o.data)[args.o.offset(1, 1, 3, 2)] ^= 1;
    }));
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].outcome, BenchOutcome::wrong);
    EXPECT_THAT(rows[0].message, HasSubstr("changed while it was timed: o at b1 h1 row 3 column 2"));
}

TEST(Bench, NoKernelIsARowThatSaysSo) {
    const auto rows = bench(NoKernels());
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].outcome, BenchOutcome::not_run);
    EXPECT_THAT(to_text(rows[0]), HasSubstr("not run: no kernel takes"));
}

/// The planned kernels of a case on the host.
std::vector<BenchRow> bench_planned(const Case& c) {
    const auto timing = time_on_host({});
    const auto source = house_kernels(timing->target(), {}, kernel_families_of({&c, 1}));
    return bench_case(c, *source, *timing, {.seconds = 0.01, .kernel_filter = {}});
}

TEST(Bench, StagesAreTimedTogether) {
    Case c = small_case();
    c.family = ApiFamily::fwd_splitkv;
    c.split.num_splits = 0; // the device's
    const auto rows = bench_planned(c);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].outcome, BenchOutcome::measured) << rows[0].message;
    EXPECT_THAT(rows[0].kernel, HasSubstr(" + fwd_splitkv_combine_"));
    EXPECT_EQ(rows[0].work.flops, 2.0 * 2 * 2 * 70 * 90 * 128);
    EXPECT_EQ(rows[0].work.bytes, 2.0 * 2 * 2 * 64 * (70 + 90 + 90 + 70) + 4.0 * 2 * 2 * 70);
}

TEST(Bench, WhatUpdatesItsInputsIsTimedAndJudgedOnFreshOnes) {
    Case c = small_case();
    c.family = ApiFamily::fwd_appendkv;
    c.seqlen_q = {3};
    c.append.seqlen_knew = 5;
    c.append.rope = Rope::interleaved;
    c.append.rotary_dim = 32;
    const auto rows = bench_planned(c);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].outcome, BenchOutcome::measured) << rows[0].message;
    const double keys = 2 * 2 * 5, queries = 2 * 2 * 3;
    EXPECT_EQ(rows[0].work.flops, 3.0 * 32 * (keys + queries));
    EXPECT_EQ(rows[0].work.bytes, 2.0 * (2 * keys * (64 + 64) + 2 * queries * 32 + 2 * (2 * 5) * 16));
}

Case backward_case() {
    Case c = small_case();
    c.family = ApiFamily::bwd;
    c.lse = true;
    return c;
}

TEST(Bench, BackwardIsTimedWholeAndInParts) {
    for (const bool deterministic : {false, true}) {
        Case c = backward_case();
        c.backward.deterministic = deterministic;
        const auto rows = bench_planned(c);
        ASSERT_EQ(rows.size(), 1U);
        EXPECT_EQ(rows[0].outcome, BenchOutcome::measured) << rows[0].message;
        EXPECT_EQ(rows[0].work.flops, 2.0 * 5 * 64 * 2 * 2 * 70 * 90) << "five products";
        EXPECT_EQ(rows[0].work.bytes, 2.0 * 2 * 2 * 64 * (4 * 70 + 4 * 90) + 4.0 * 2 * 2 * 70)
            << "q, o, d_o and dq, k, v, dk and dv, and lse";
        std::vector<std::string> names;
        for (const PartTime& part : rows[0].parts) {
            names.push_back(part.name);
            EXPECT_GT(part.time.median, 0.0) << part.name;
            EXPECT_GE(part.time.samples, 5) << part.name;
        }
        EXPECT_THAT(names, testing::ElementsAre("clearing of memory", "bwd_dot_do_o", "bwd_dq_dk_dv",
                                                "bwd_convert_dq"));
        EXPECT_THAT(to_text(rows[0]), HasSubstr("        bwd_dq_dk_dv "));
        EXPECT_EQ(to_json(rows[0]).at("parts").size(), 4U);
    }
}

TEST(Bench, SumsOfDqThatGoWrongWhileTheyAreTimedAreSeen) {
    int launches = 0;
    const Launch right = launch_with(no_fault<targets::BackwardFault>);
    const auto source = kernels_that(
        [&](const KernelConfig& config, const Invocation& invocation) {
            right(config, invocation);
            if (config.signature.family == KernelFamily::bwd_convert_dq && ++launches > 4)
                static_cast<std::uint16_t*>(std::get<BwdArgs>(invocation).dq.data)[5] ^= 0x4000;
        },
        {backward_case()}, "gfx950");
    const auto timing = time_on_host({});
    const auto rows = bench_case(backward_case(), *source, *timing, {.seconds = 0.01, .kernel_filter = {}});
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_GT(launches, 4);
    EXPECT_EQ(rows[0].outcome, BenchOutcome::wrong) << "its bits may differ, and are judged again";
    EXPECT_THAT(rows[0].message, HasSubstr("G1 dq"));
    EXPECT_EQ(rows[0].time.samples, 0);
}

TEST(Bench, AChainIsARowThatSaysSo) {
    Case c = backward_case();
    c.backward.forward = ForwardResults::kernel;
    const auto rows = bench_planned(c);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].outcome, BenchOutcome::not_run);
    EXPECT_THAT(rows[0].message, HasSubstr("forward's kernel runs before backward"));
}

TEST(Bench, TargetsAreNamed) {
    EXPECT_THROW(make_timing_target("nonsense", {}), InputError);
}

} // namespace
} // namespace fmha::harness::test
