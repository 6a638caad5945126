// G2 is left out where roundings are not independent (docs/spec/tolerances.md). There another gate sees a wrong kernel, and right beside it
// G2 is asked and sees a mistake that no other gate does.
#include "harness/data/storage.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/harness/faulty_forward.hpp"
#include "tests/harness/faulty_kernels.hpp"
#include "tests/harness/gate_support.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace fmha::harness::test {
namespace {

using host_target::Fault;
using testing::Contains;
using testing::IsEmpty;
using testing::Not;

bool is_asked(const CaseResult& result, const std::string& gate) {
    return std::ranges::any_of(result.gates, [&](const GateVerdict& v) { return v.gate == gate; });
}

/// Row 0 sees one key, whose weight is 1 without any rounding; row 1 sees two.
Case two_rows() {
    Case c = small_case();
    c.batch = 4;
    c.nhead_q = c.nhead_k = 16;
    c.seqlen_q = {2};
    c.mask = MaskType::top_left;
    c.window_right = 0;
    return c;
}

/// Changes a row of O up and down by turns.
void shake(const FwdArgs& a, std::int64_t b, std::int64_t h, std::int64_t row, double by) {
    for (std::int64_t c = 0; c < a.shape.hdim_v; ++c) {
        const std::int64_t at = a.o.offset(b, h, row, c);
        const double o = reference::decode(a.o.type, load_code(a.o.data, a.o.type, at));
        store_code(a.o.data, a.o.type, at, reference::encode(a.o.type, o + (c % 2 == 0 ? by : -by)));
    }
}

std::function<void(const FwdArgs&)> row_changed(std::int64_t row) {
    return [row](const FwdArgs& a) {
        for (std::int64_t b = 0; b < a.shape.batch; ++b)
            for (std::int64_t h = 0; h < a.shape.nhead_q; ++h) shake(a, b, h, row, 1e-3);
    };
}

TEST(RowsOfOneWeight, AreHeldByAnotherGateThanG2) {
    const CaseResult right = run_right(two_rows()), wrong = run_spoiled(two_rows(), row_changed(0));
    EXPECT_EQ(right.outcome, Outcome::passed) << right.message;
    EXPECT_THAT(failed_gates(wrong), Contains("G5.3"));
    EXPECT_EQ(verdict(wrong, "G2").ratio, verdict(right, "G2").ratio) << "row 0 is in no statistic";
}

TEST(RowsOfOneWeight, LeaveTheRowsBesideThemToG2) {
    const CaseResult wrong = run_spoiled(two_rows(), row_changed(1));
    EXPECT_THAT(failed_gates(wrong), Contains("G2"));
}

/// The sum over scores that differ by little: the mean weight is about 1 - 20·scale of the largest.
Case flat_case(double scale) {
    Case c = small_case();
    c.scale_s = scale;
    return c;
}

// A step of fp16 below 1 is 2^-11, and the exemption ends at two of them.
TEST(FlatScores, AreLeftOutOfG2WithinAStepOfTheirTypeOnly) {
    EXPECT_FALSE(is_asked(run_right(flat_case(1e-5)), "G2"));
    for (const double scale : {1e-4, 1e-3, 1e-2}) {
        const CaseResult right = run_right(flat_case(scale));
        EXPECT_EQ(right.outcome, Outcome::passed) << right.message;
        EXPECT_TRUE(is_asked(right, "G2")) << scale;
    }
    Case bf16 = flat_case(1e-4);
    bf16.data_type = DataType::bf16;
    EXPECT_FALSE(is_asked(run_right(bf16), "G2")) << "a step of bf16 is eight times as large";
}

TEST(FlatScores, StillShowWrongKernels) {
    for (const Fault fault : {Fault::last_key_dropped, Fault::middle_key_dropped, Fault::head_map_plus_one,
                              Fault::hdim_v_tail_lost, Fault::lse_without_maximum, Fault::output_unwritten}) {
        const auto results = run_case(flat_case(1e-5), FaultyForward(fault), {});
        ASSERT_EQ(results.size(), 1U);
        EXPECT_EQ(results.front().outcome, Outcome::failed) << to_string(fault);
        EXPECT_FALSE(is_asked(results.front(), "G2")) << to_string(fault);
        EXPECT_THAT(failed_gates(results.front()), Not(IsEmpty())) << to_string(fault);
    }
}

TEST(FlatScores, BesideTheExemptionShowWhatG2AloneSees) {
    const CaseResult result = run_spoiled(flat_case(1e-4), [](const FwdArgs& a) {
        for (std::int64_t b = 0; b < a.shape.batch; ++b)
            for (std::int64_t h = 0; h < a.shape.nhead_q; ++h)
                for (std::int64_t i = 0; i < a.shape.seqlen_q; ++i) shake(a, b, h, i, 1.5e-4);
    });
    EXPECT_THAT(failed_gates(result), Contains("G2"));
    EXPECT_TRUE(verdict(result, "G1").passed);
}

/// The gates that are red on `c` with each of `faults`, without the unseen faults.
template <class Fault>
void expect_seen_without_g2(const char* name, const std::vector<Fault>& faults) {
    const auto cases = cases_of(name);
    ASSERT_EQ(first_red(cases, launch_with(no_fault<Fault>)), "") << name;
    for (const Fault fault : faults) {
        const std::string red = first_red(cases, launch_with(fault));
        EXPECT_NE(red, "") << name << ' ' << to_string(fault);
        EXPECT_THAT(red, Not(testing::HasSubstr("G2"))) << name << ' ' << to_string(fault);
    }
}

// A sink logit above nearly equal scores: all weights of a head have one relative error.
TEST(WeightsUnderASink, StillShowWrongKernels) {
    using enum targets::PrefillFault;
    expect_seen_without_g2<targets::PrefillFault>(
        "batch_prefill/"
        "plain[hdim=88,dtype=fp8bf16,nhead_q=3,seqlen_q=47,scale_s=0.05,sink_logits=normal,fill=indexed]@"
        "18335043467640278615",
        {next_slot, last_page_dropped, last_page_length_less, table_ignored});
}

// A sink logit above scores of which a single one counts: all elements of a row have one relative error, and few rows make up a head's.
TEST(OneKeyUnderASink, IsRightWithinOneRoundingARowAndStillShowsWrongKernels) {
    using enum targets::PrefillFault;
    const auto cases =
        cases_of("batch_prefill/"
                 "plain[heads=4:2,hdim=96,seqlen=59:1280,layout=bshd,dtype=bf16,sink_logits=saturated,"
                 "page_size=1024,page_order=9,kv_layout=vectorized,kv_lookup=sglang_1d,fill=sharp]@"
                 "13381736503287971712");
    EXPECT_EQ(first_red(cases, launch_with(no_fault<targets::PrefillFault>)), "");
    for (const targets::PrefillFault fault :
         {next_slot, last_page_dropped, last_page_length_less, table_ignored})
        EXPECT_NE(first_red(cases, launch_with(fault)), "") << to_string(fault);
}

// Powers of two and one weight for all rows: splits that are combined.
TEST(SplitsOfOneWeight, StillShowWrongKernels) {
    using enum targets::CacheFault;
    expect_seen_without_g2<targets::CacheFault>(
        "splitkv/"
        "plain[heads=2,hdim=96,dtype=fp8bf16,seqlen_q=128,seqlen_k=1,sink_logits=saturated,num_splits=2,"
        "qscale=pertensor,fill=zeros]@918635958205548364",
        {length_one_less, sink_in_every_split, split_of_the_neighbour, splits_ignored});
}

} // namespace
} // namespace fmha::harness::test
