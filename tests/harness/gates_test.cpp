// Every gate sees red: a correct kernel's output is spoiled after the launch, and the gate that is there for that kind
// of damage must notice, while it passes the untouched output.

#include "harness/data/storage.hpp"
#include "harness/families/all_families.hpp"
#include "tests/harness/gate_support.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace fmha::harness::test {
namespace {

using testing::HasSubstr;

void change_every_o(const FwdArgs& args, const std::function<double(double)>& change) {
    for (std::int64_t b = 0; b < args.shape.batch; ++b)
        for (std::int64_t h = 0; h < args.shape.nhead_q; ++h)
            for (std::int64_t i = 0; i < args.shape.seqlen_q; ++i)
                for (std::int64_t c = 0; c < args.shape.hdim_v; ++c)
                    set_o(args, b, h, i, c, change(get_o(args, b, h, i, c)));
}
float& lse_at(const FwdArgs& args, std::int64_t b, std::int64_t h, std::int64_t i) {
    return static_cast<float*>(args.lse.data)[args.lse.offset(b, h, i, 0)];
}

void expect_failed_by(const CaseResult& result, const std::string& gate) {
    EXPECT_EQ(result.outcome, Outcome::failed) << result.message;
    const GateVerdict v = verdict(result, gate);
    EXPECT_FALSE(v.passed) << gate << " let it pass with ratio " << v.ratio;
    EXPECT_FALSE(v.detail.empty());
}

TEST(Gates, PassTheUntouchedOutput) {
    const CaseResult result = run_right(small_case());
    EXPECT_EQ(result.outcome, Outcome::passed) << result.message;
    for (const char* gate : {"G1", "G2", "G2.mean", "G3", "G4", "G5.5", "G5.6", "G5.8", "G5.9"})
        EXPECT_TRUE(verdict(result, gate).passed) << gate;
    EXPECT_EQ(result.rows, 2 * 2 * 70);
    EXPECT_EQ(result.elements, 2 * 2 * 70 * 64);
}

TEST(Gates, G1SeesOneWrongElement) {
    const CaseResult result = run_spoiled(
        small_case(), [](const FwdArgs& a) { set_o(a, 1, 0, 13, 5, get_o(a, 1, 0, 13, 5) + 0.05); });
    expect_failed_by(result, "G1");
    ASSERT_FALSE(result.worst.empty());
    EXPECT_EQ(result.worst.front().b, 1);
    EXPECT_EQ(result.worst.front().h, 0);
    EXPECT_EQ(result.worst.front().row, 13);
    EXPECT_EQ(result.worst.front().column, 5);
    EXPECT_LE(result.worst.size(), 10U);
}

TEST(Gates, G1SeesNan) {
    expect_failed_by(run_spoiled(small_case(), [](const FwdArgs& a) { set_o(a, 0, 1, 3, 0, std::nan("")); }),
                     "G1");
}

TEST(Gates, G2SeesSmallErrorsEverywhere) {
    // Each element stays inside its own limit; together they are larger than rounding makes them.
    std::int64_t n = 0;
    const CaseResult result = run_spoiled(small_case(), [&n](const FwdArgs& a) {
        change_every_o(a, [&n](double o) { return o + (++n % 2 == 0 ? 2.5e-4 : -2.5e-4); });
    });
    expect_failed_by(result, "G2");
    EXPECT_TRUE(verdict(result, "G1").passed);
}

TEST(Gates, G2SeesOneWrongHead) {
    std::int64_t n = 0;
    const CaseResult result = run_spoiled(small_case(), [&n](const FwdArgs& a) {
        for (std::int64_t i = 0; i < a.shape.seqlen_q; ++i)
            for (std::int64_t c = 0; c < a.shape.hdim_v; ++c)
                set_o(a, 1, 1, i, c, get_o(a, 1, 1, i, c) + (++n % 2 == 0 ? 2.5e-4 : -2.5e-4));
    });
    expect_failed_by(result, "G2");
    EXPECT_NE(verdict(result, "G2").detail.find("b1 h1"), std::string::npos) << verdict(result, "G2").detail;
}

TEST(Gates, G2AllowsAllElementsTogetherNoMoreBecauseTheyAreFew) {
    // 1,920 elements of one head: alone it may have twice the factor, all elements together may not.
    Case c = small_case();
    c.batch = c.nhead_q = c.nhead_k = 1;
    c.seqlen_q = {30};
    EXPECT_TRUE(verdict(run_right(c), "G2").passed);
    std::int64_t n = 0;
    const CaseResult result = run_spoiled(c, [&n](const FwdArgs& a) {
        change_every_o(a, [&n](double o) { return o + (++n % 2 == 0 ? 1.2e-4 : -1.2e-4); });
    });
    expect_failed_by(result, "G2");
    EXPECT_LT(verdict(result, "G2").ratio, 2.0);
    EXPECT_THAT(verdict(result, "G2").detail, HasSubstr("1.25 allowed"));
    EXPECT_TRUE(verdict(result, "G1").passed);
}

/// `c` with one code towards zero in every other element of O, as by a truncating cast.
CaseResult truncated(const Case& c) {
    std::int64_t n = 0;
    return run_spoiled(c, [&n](const FwdArgs& a) {
        for (std::int64_t b = 0; b < a.shape.batch; ++b)
            for (std::int64_t h = 0; h < a.shape.nhead_q; ++h)
                for (std::int64_t i = 0; i < a.shape.seqlen_q; ++i)
                    for (std::int64_t k = 0; k < a.shape.hdim_v; ++k) {
                        const std::int64_t at = a.o.offset(b, h, i, k);
                        const std::uint32_t code = load_code(a.o.data, a.o.type, at);
                        if (++n % 2 == 0 && (code & 0x7FFFU) != 0)
                            store_code(a.o.data, a.o.type, at, code - 1);
                    }
    });
}

TEST(Gates, MeanErrorSeesTruncation) {
    Case c = small_case();
    for (const Fill fill : {c.fill, Fill::rising}) {
        c.fill = fill;
        const CaseResult result = truncated(c);
        expect_failed_by(result, "G2.mean");
        EXPECT_NE(verdict(result, "G2.mean").detail.find("towards zero"), std::string::npos);
    }
}

// Rows of a head share the fill's addition to their logits, and without a cast of P its rounding is most of their errors.
TEST(Gates, MeanErrorOfRisingLogitsNeedsRoundedWeights) {
    Case c = small_case();
    c.data_type = DataType::fp32;
    const auto has_mean = [](const CaseResult& result) {
        return std::ranges::any_of(result.gates,
                                   [](const GateVerdict& one) { return one.gate == "G2.mean"; });
    };
    EXPECT_TRUE(has_mean(run_spoiled(c, [](const FwdArgs&) {})));
    c.fill = Fill::rising;
    EXPECT_FALSE(has_mean(run_spoiled(c, [](const FwdArgs&) {})));
}

TEST(Gates, G3SeesAWrongLse) {
    expect_failed_by(run_spoiled(small_case(), [](const FwdArgs& a) { lse_at(a, 0, 1, 69) += 1e-3F; }), "G3");
}

TEST(Gates, G3SeesAWrongInfinity) {
    expect_failed_by(run_spoiled(small_case(), [](const FwdArgs& a) { lse_at(a, 1, 1, 0) = -INFINITY; }),
                     "G3");
}

/// What a kernel stores that has `number` as the score of masked keys.
void mask_by_number(const FwdArgs& a, double number) {
    const auto real = [](const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t i,
                         std::int64_t c) {
        return reference::decode(view.type, load_code(view.data, view.type, view.offset(b, h, i, c)));
    };
    for (std::int64_t b = 0; b < a.shape.batch; ++b)
        for (std::int64_t h = 0; h < a.shape.nhead_q; ++h)
            for (std::int64_t i = 0; i < a.shape.seqlen_q; ++i) {
                std::vector<double> scores;
                for (std::int64_t j = 0; j < a.shape.seqlen_k; ++j) {
                    double score = 0.0;
                    for (std::int64_t c = 0; c < a.shape.hdim_q; ++c)
                        score += real(a.q, b, h, i, c) * real(a.k, b, h, j, c);
                    scores.push_back(j <= i ? score * static_cast<double>(a.score.scale_s) : number);
                }
                const double top = std::ranges::max(scores);
                double sum = 0.0;
                for (double& score : scores) sum += score = std::exp(score - top);
                lse_at(a, b, h, i) = static_cast<float>(top + std::log(sum));
                for (std::int64_t c = 0; c < a.shape.hdim_v; ++c) {
                    double o = 0.0;
                    for (std::int64_t j = 0; j < a.shape.seqlen_k; ++j)
                        o += scores[static_cast<std::size_t>(j)] / sum * real(a.v, b, h, j, c);
                    set_o(a, b, h, i, c, o);
                }
            }
}

TEST(Gates, ShiftedScoresShowAFiniteNumberInPlaceOfInfinity) {
    Case c = small_case();
    c.mask = MaskType::top_left;
    c.window_right = 0;
    const auto by = [&](double number) {
        return run_spoiled(c, [number](const FwdArgs& a) { mask_by_number(a, number); });
    };
    EXPECT_EQ(by(-1e4).outcome, Outcome::passed) << "scores of a few units never come near";
    c.fill = Fill::shifted;
    EXPECT_EQ(by(-INFINITY).outcome, Outcome::passed);
    expect_failed_by(by(-1e4), "G1");
    expect_failed_by(by(-65504.0), "G3");
}

TEST(Gates, G4IsReportedAndNeverRequired) {
    const CaseResult result = run_spoiled(small_case(), [](const FwdArgs& a) { set_o(a, 0, 0, 0, 0, 3.0); });
    const GateVerdict g4 = verdict(result, "G4");
    EXPECT_FALSE(g4.passed);
    EXPECT_FALSE(g4.failed());
    const CaseResult nan = run_spoiled(small_case(), [](const FwdArgs& a) { set_o(a, 0, 0, 0, 0, NAN); });
    EXPECT_TRUE(std::isinf(verdict(nan, "G4").ratio)) << verdict(nan, "G4").ratio;
}

TEST(Gates, RandomBytes) {
    Case c = small_case();
    c.p_drop = 0.2;
    c.dropout_seed = 123;
    c.store_randval = true;
    EXPECT_TRUE(verdict(run_right(c), "G5.1").passed);
    const CaseResult result = run_spoiled(c, [](const FwdArgs& a) {
        static_cast<std::uint8_t*>(a.randval.data)[a.randval.offset(1, 0, 69, 89)] ^= 1U;
    });
    expect_failed_by(result, "G5.1");
    EXPECT_NE(verdict(result, "G5.1").detail.find("row 69 key 89"), std::string::npos);
}

TEST(Gates, RandomBytesBehindTheMaskAreNotCompared) {
    Case c = small_case();
    c.mask = MaskType::top_left;
    c.window_right = 0;
    c.p_drop = 0.2;
    c.store_randval = true;
    const CaseResult result = run_spoiled(c, [](const FwdArgs& a) {
        static_cast<std::uint8_t*>(a.randval.data)[a.randval.offset(0, 0, 0, 60)] ^= 1U;
    });
    EXPECT_EQ(result.outcome, Outcome::passed) << result.message;
}

Case case_with_empty_rows() {
    Case c = small_case();
    c.seqlen_q = {90};
    c.seqlen_k = {70};
    c.mask = MaskType::bottom_right;
    c.window_right = 0;
    return c;
}

TEST(Gates, EmptyRowsAreExactlyZero) {
    EXPECT_TRUE(verdict(run_right(case_with_empty_rows()), "G5.2").passed);
    // −0 is not +0, and nothing is small enough.
    expect_failed_by(
        run_spoiled(case_with_empty_rows(), [](const FwdArgs& a) { set_o(a, 0, 0, 2, 7, -0.0); }), "G5.2");
    expect_failed_by(
        run_spoiled(case_with_empty_rows(), [](const FwdArgs& a) { set_o(a, 0, 0, 2, 7, 0x1p-24); }), "G5.2");
    expect_failed_by(
        run_spoiled(case_with_empty_rows(), [](const FwdArgs& a) { lse_at(a, 0, 0, 2) = -1e30F; }), "G5.2");
}

TEST(Gates, SingleKeyRowsAreCopiesOfV) {
    Case c = small_case();
    c.mask = MaskType::top_left;
    c.window_right = 0;
    EXPECT_TRUE(verdict(run_right(c), "G5.3").passed);
    const CaseResult result = run_spoiled(c, [](const FwdArgs& a) {
        const std::int64_t at = a.o.offset(1, 1, 0, 9);
        store_code(a.o.data, a.o.type, at, load_code(a.o.data, a.o.type, at) ^ 1U);
    });
    expect_failed_by(result, "G5.3");
}

TEST(Gates, EdgeRowsAreCopiesOfTheWinningKey) {
    for (const Fill fill : {Fill::edge_last, Fill::edge_first}) {
        Case c = small_case();
        c.fill = fill;
        EXPECT_TRUE(verdict(run_right(c), "exact").passed);
        const CaseResult result = run_spoiled(c, [](const FwdArgs& a) {
            const std::int64_t at = a.o.offset(0, 1, 40, 63);
            store_code(a.o.data, a.o.type, at, load_code(a.o.data, a.o.type, at) ^ 1U);
        });
        expect_failed_by(result, "exact");
    }
}

TEST(Gates, WritesOutsideTheOutputs) {
    const auto o_code = [](const FwdArgs& a, std::int64_t element) {
        store_code(a.o.data, a.o.type, element, 0x3C00U);
    };
    // Between two rows, in the guard in front, in the guard behind.
    const CaseResult between =
        run_spoiled(small_case(), [&](const FwdArgs& a) { o_code(a, a.o.offset(0, 0, 3, 64)); });
    expect_failed_by(between, "G5.5");
    EXPECT_NE(between.message.find("between logical elements"), std::string::npos) << between.message;
    const CaseResult before = run_spoiled(small_case(), [&](const FwdArgs& a) { o_code(a, -1); });
    expect_failed_by(before, "G5.5");
    EXPECT_NE(before.message.find("element -1 (guard before)"), std::string::npos) << before.message;
    const CaseResult after =
        run_spoiled(small_case(), [&](const FwdArgs& a) { o_code(a, 2 * a.o.batch_stride); });
    expect_failed_by(after, "G5.5");
    EXPECT_NE(after.message.find("guard after"), std::string::npos) << after.message;
}

TEST(Gates, WritesToAnInput) {
    const CaseResult result = run_spoiled(small_case(), [](const FwdArgs& a) {
        const std::int64_t at = a.k.offset(0, 0, 5, 5);
        store_code(a.k.data, a.k.type, at, load_code(a.k.data, a.k.type, at) ^ 1U);
    });
    EXPECT_FALSE(verdict(result, "G5.5").passed);
    EXPECT_NE(verdict(result, "G5.5").detail.find("an input was written"), std::string::npos);
}

TEST(Gates, ResultsThatDependOnPadding) {
    // The last stored element depends on the padding behind it; with NaN there it would show anyway, so the kernel
    // looks at one bit only.
    const CaseResult result = run_spoiled(small_case(), [](const FwdArgs& a) {
        const std::uint32_t padding = load_code(a.v.data, a.v.type, a.v.offset(0, 0, 0, a.shape.hdim_v));
        const std::int64_t at = a.o.offset(0, 0, 0, 0);
        store_code(a.o.data, a.o.type, at, load_code(a.o.data, a.o.type, at) ^ (padding >> 1U & 1U));
    });
    EXPECT_FALSE(verdict(result, "G5.6").passed) << result.message;
    EXPECT_NE(verdict(result, "G5.6").detail.find("depends on padding"), std::string::npos);
}

TEST(Gates, ResultsThatDifferFromRunToRun) {
    int runs = 0;
    const CaseResult result = run_spoiled(small_case(), [&runs](const FwdArgs& a) {
        const std::int64_t at = a.o.offset(0, 0, 0, 0);
        store_code(a.o.data, a.o.type, at,
                   load_code(a.o.data, a.o.type, at) ^ (static_cast<unsigned>(runs++) & 1U));
    });
    // Two runs in different memory, then a third that decides whose fault the difference is: it equals the first.
    EXPECT_FALSE(verdict(result, "G5.6").passed && verdict(result, "G5.7").passed);
    Case three = small_case();
    three.repeats = 3;
    runs = 0;
    const CaseResult unstable = run_spoiled(three, [&runs](const FwdArgs& a) {
        const std::int64_t at = a.o.offset(0, 0, 0, 0);
        store_code(a.o.data, a.o.type, at,
                   load_code(a.o.data, a.o.type, at) ^ (static_cast<unsigned>(runs++) & 3U));
    });
    EXPECT_FALSE(verdict(unstable, "G5.7").passed);
    EXPECT_NE(verdict(unstable, "G5.7").detail.find("two identical runs differ"), std::string::npos);
    // As many runs as the case has, the last one too.
    runs = 0;
    const CaseResult late = run_spoiled(three, [&runs](const FwdArgs& a) {
        const std::int64_t at = a.o.offset(0, 0, 0, 0);
        if (++runs == 3) store_code(a.o.data, a.o.type, at, load_code(a.o.data, a.o.type, at) ^ 1U);
    });
    EXPECT_FALSE(verdict(late, "G5.7").passed);
    EXPECT_EQ(runs, 3);
}

/// Takes the row stride of small_case's tensors for granted, which follows from the layout in its name.
MisledKernel stride_for_granted(TensorView FwdArgs::*tensor) {
    return MisledKernel([tensor](FwdArgs& args) { (args.*tensor).row_stride = 64 + 8; });
}

TEST(Gates, AStrideThatIsTakenForGranted) {
    for (TensorView FwdArgs::*tensor : {&FwdArgs::q, &FwdArgs::k, &FwdArgs::v}) {
        const CaseResult result = run_case(small_case(), stride_for_granted(tensor), {}).front();
        // In the layout of the case it makes no difference, so the comparison with the reference sees nothing.
        EXPECT_TRUE(verdict(result, "G1").passed);
        EXPECT_TRUE(verdict(result, "G5.6").passed);
        EXPECT_FALSE(verdict(result, "G5.8").passed);
        EXPECT_THAT(
            result.message,
            HasSubstr(
                "G5.8 : the same values in another layout give another result, which depends on padding"));
        EXPECT_EQ(result.outcome, Outcome::failed);
    }
    // O is not written where it belongs then, which two gates have to say.
    const CaseResult o = run_case(small_case(), stride_for_granted(&FwdArgs::o), {}).front();
    EXPECT_FALSE(verdict(o, "G5.5").passed);
    EXPECT_TRUE(verdict(o, "G1").passed);
}

TEST(Gates, ALayoutIsNotTriedWhereMemoryIsShort) {
    CaseRunOptions little;
    little.memory_limit = fwd_family().bytes(small_case(), fp8_flavour(little.arch), 1).total();
    const CaseResult result = run_case(small_case(), FittingHostKernel(), little).front();
    EXPECT_EQ(result.outcome, Outcome::passed) << result.message;
    EXPECT_TRUE(verdict(result, "G5.6").passed);
    for (const auto& gate : result.gates) EXPECT_NE(gate.gate, "G5.8");
}

TEST(Gates, UnwrittenOutputIsNotFinite) {
    const CaseResult result = run_spoiled(small_case(), [](const FwdArgs& a) {
        store_code(a.o.data, a.o.type, a.o.offset(1, 1, 69, 63), poison_code(a.o.type, Poison::nan));
    });
    expect_failed_by(result, "G5.9");
}

TEST(Gates, HugeDataIsJudgedByItsFiniteness) {
    Case c = small_case();
    c.fill = Fill::huge;
    EXPECT_EQ(run_right(c).outcome, Outcome::passed);
    expect_failed_by(run_spoiled(c, [](const FwdArgs& a) { set_o(a, 0, 0, 0, 0, INFINITY); }), "G5.9");
}

TEST(Gates, EightBitOutputsCountCodes) {
    Case c = small_case();
    c.data_type = DataType::fp8;
    c.scale_o = 16.0;
    EXPECT_EQ(run_right(c).outcome, Outcome::passed);
    expect_failed_by(
        run_spoiled(c, [](const FwdArgs& a) { set_o(a, 0, 0, 0, 0, get_o(a, 0, 0, 0, 0) > 0 ? -240 : 240); }),
        "G1");
}

TEST(Mistrusted, AllZeroOutput) {
    const CaseResult result =
        run_spoiled(small_case(), [](const FwdArgs& a) { change_every_o(a, [](double) { return 0.0; }); });
    EXPECT_EQ(result.outcome, Outcome::mistrusted);
    EXPECT_NE(result.message.find("zero"), std::string::npos);
}

} // namespace
} // namespace fmha::harness::test
