// The gates on both stages of split-KV: the kernels' results are accepted, and a change in any of them is seen in its stage.
#include "harness/cases/case_enums.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/families/family.hpp"
#include "harness/run/candidate.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "reference/forward.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/harness/faulty_kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>

namespace fmha::harness {
namespace {

using testing::HasSubstr;

Case split_case() {
    Case c;
    c.id = "t/split@1";
    c.family = ApiFamily::fwd_splitkv;
    c.data_type = DataType::bf16;
    c.batch = 2;
    c.hdim_q = c.hdim_v = 32;
    c.seqlen_q = {3};
    c.seqlen_k = {300};
    c.split.num_splits = 3;
    return c;
}

/// "gate:tensor" of all gates, or of those that are red.
std::vector<std::string> gates_of(const CaseResult& result, bool red = false) {
    std::vector<std::string> names;
    for (const GateVerdict& gate : result.gates)
        if (!red || gate.failed()) names.push_back(gate.gate + ":" + gate.tensor);
    return names;
}

/// A case that both kernels have computed.
class Computed {
  public:
    explicit Computed(const Case& c)
        : case_(c), data_(family_of(case_.family).allocate(case_, Fp8Flavour::ocp)),
          expectation_(data_->expectation(0)),
          source_(house_kernels(make_target("host", {}), {}, kernel_families_of({&case_, 1}))),
          candidate_(
              planned_candidate(*source_, family_of(case_.family), case_, to_problem(case_, "gfx950"))) {
        std::vector<KernelConfig> kernels;
        for (const StageKernel& stage : candidate_.stages) kernels.push_back(stage.instance->config());
        data_->prepare(kernels);
        data_->tensors().refill(Poison::nan);
        run(0);
        run(1);
    }
    void run(std::size_t stage) { candidate_.stages[stage].instance->launch(data_->invocation(), {}); }
    GuardedTensor& tensor(const char* name) { return data_->tensors().tensor(name); }
    void set(const char* name, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t c, float to) {
        tensor(name).set_code(b, h, row, c, std::bit_cast<std::uint32_t>(to));
    }
    float get(const char* name, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t c) {
        return std::bit_cast<float>(tensor(name).code(b, h, row, c));
    }
    SplitKvArgs args() { return std::get<SplitKvArgs>(data_->invocation()); }
    /// The first gate that failed, of either stage in launch order; "" when all passed.
    std::string verdict() {
        std::string failed;
        for (std::size_t n = 0; n < 2; ++n) {
            const KernelFamily stage = candidate_.families[n];
            const auto judged = expectation_->judge(stage, data_->outputs(stage),
                                                    candidate_.stages[n].numerics, InputOrigin::fill);
            EXPECT_GT(judged.rows, 0);
            EXPECT_EQ(judged.mistrust, "");
            for (const GateVerdict& gate : judged.judgement.gates) {
                seen_.push_back(gate.gate + ":" + gate.tensor);
                if (gate.failed() && failed.empty())
                    failed = gate.gate + ":" + gate.tensor + " " + gate.detail;
            }
        }
        return failed;
    }
    /// The verdict on O and LSE alone, as if others had brought them.
    CaseResult given() {
        const Numerics numerics =
            reference::kernel_numerics(element_types(case_.data_type, Fp8Flavour::ocp), 1.0);
        return judge_given_outputs(case_, *data_, *expectation_, numerics);
    }
    /// O and LSE of another number of splits.
    void take_outputs_of(Computed& other) {
        for (const char* name : {"o", "lse"}) {
            const TensorLayout& layout = tensor(name).layout();
            for (std::int64_t b = 0; b < layout.batches; ++b)
                for (std::int64_t h = 0; h < layout.heads; ++h)
                    for (std::int64_t row = 0; row < layout.rows; ++row)
                        for (std::int64_t c = 0; c < layout.columns; ++c)
                            tensor(name).set_code(b, h, row, c, other.tensor(name).code(b, h, row, c));
        }
    }
    /// Puts change(o) in the place of every element of O.
    void each_o(const std::function<double(double)>& change) {
        GuardedTensor& o = tensor("o");
        const TensorLayout& layout = o.layout();
        for (std::int64_t b = 0; b < layout.batches; ++b)
            for (std::int64_t h = 0; h < layout.heads; ++h)
                for (std::int64_t row = 0; row < layout.rows; ++row)
                    for (std::int64_t c = 0; c < layout.columns; ++c) {
                        const double value = reference::decode(layout.type, o.code(b, h, row, c));
                        o.set_code(b, h, row, c, reference::encode(layout.type, change(value)));
                    }
    }
    std::int64_t splits() const { return case_.split.num_splits; }
    double oracle_disagreement() { return expectation_->oracle_disagreement(); }
    const std::vector<std::string>& seen() const { return seen_; }

  private:
    Case case_;
    std::unique_ptr<CaseData> data_;
    std::unique_ptr<CaseExpectation> expectation_;
    std::unique_ptr<KernelSource> source_;
    Candidate candidate_;
    std::vector<std::string> seen_;
};

TEST(SplitGates, AcceptWhatBothKernelsWrite) {
    Computed computed(split_case());
    EXPECT_LE(computed.oracle_disagreement(), 1.0);
    EXPECT_EQ(computed.verdict(), "");
    EXPECT_THAT(computed.seen(), testing::IsSupersetOf({"G1:o_acc", "G2:o_acc", "G3:lse_acc", "G5.9:o_acc",
                                                        "G1:o", "G3:lse", "G1.whole:o", "G3.whole:lse"}));
}

TEST(SplitGates, SeeAWrongPartialResultInTheMainStage) {
    Computed o(split_case()), lse(split_case());
    o.set("o_acc", 1, 4, 2, 7, o.get("o_acc", 1, 4, 2, 7) + 0.01F);
    EXPECT_THAT(o.verdict(), HasSubstr("G1:o_acc split 1: first at b1 h1 row 2 column 7"));
    lse.set("lse_acc", 0, 2, 1, 0, lse.get("lse_acc", 0, 2, 1, 0) + 0.001F);
    EXPECT_THAT(lse.verdict(), HasSubstr("G3:lse_acc split 2: first at b0 h0 row 1"));
}

TEST(SplitGates, SeeASplitThatIsNotEmptyAsItShould) {
    Case c = split_case();
    c.seqlen_k = {2}; // the third split has no key
    Computed computed(c);
    EXPECT_EQ(computed.verdict(), "");
    EXPECT_THAT(computed.seen(), testing::IsSupersetOf({"G5.2:o_acc", "G5.3:o_acc"}));
    computed.set("o_acc", 0, 2, 0, 3, -0.0F);
    EXPECT_THAT(computed.verdict(), HasSubstr("G5.2:o_acc split 2"));
}

/// Where one split alone has keys, its LSE goes through both stages bit for bit, however small the difference is.
TEST(SplitGates, SeeAnLseOfOneSplitThatIsOneBitAway) {
    Case c = split_case();
    c.seqlen_k = {1};
    Computed computed(c);
    EXPECT_EQ(computed.verdict(), "");
    EXPECT_THAT(computed.seen(), testing::Contains("G5.3:o"));
    GuardedTensor& lse = computed.tensor("lse");
    lse.set_code(1, 0, 2, 0, lse.code(1, 0, 2, 0) ^ 1U);
    EXPECT_THAT(computed.verdict(), HasSubstr("G5.3:o the LSE of b1 h0 row 2"));
}

// Partial results that agree with each other, but not with the keys: only the comparison with all keys sees the final output.
TEST(SplitGates, SeeThatTheWholeIsWrongThoughItsPartsWereCombinedRightly) {
    Computed computed(split_case());
    for (std::int64_t channel = 0; channel < 32; ++channel)
        computed.set("o_acc", 0, 0, 0, channel, computed.get("o_acc", 0, 0, 0, channel) + 1.0F);
    computed.run(1);
    EXPECT_THAT(computed.verdict(), HasSubstr("G1:o_acc"));
    EXPECT_THAT(computed.seen(), testing::Contains("G1.whole:o"));
}

TEST(SplitGates, SeeAWrongFinalOutput) {
    Computed computed(split_case());
    GuardedTensor& o = computed.tensor("o");
    o.set_code(1, 1, 2, 9, o.code(1, 1, 2, 9) ^ 4U);
    EXPECT_THAT(computed.verdict(), HasSubstr("G1:o first at b1 h1 row 2 column 9"));
}

TEST(SplitGates, JudgeAnOutputThatComesWithoutPartialResults) {
    for (const std::int64_t keys : {300, 2}) {
        Case c = split_case();
        c.seqlen_k = {keys};
        Computed computed(c);
        computed.tensor("o_acc").set_code(0, 0, 0, 0, 0x7FC00000U); // nobody looks at it
        const CaseResult right = computed.given();
        EXPECT_EQ(right.outcome, Outcome::passed) << right.message;
        EXPECT_EQ(right.rows, 2 * 2 * 3);
        EXPECT_EQ(right.elements, right.rows * 32);
        EXPECT_THAT(gates_of(right),
                    testing::ElementsAre("G1.whole:o", "G2.whole:o", "G3.whole:lse", "G5.9:o"));
        GuardedTensor& o = computed.tensor("o");
        const auto code = o.code(1, 1, 2, 9);
        o.set_code(1, 1, 2, 9, code ^ 64U);
        EXPECT_THAT(computed.given().message, HasSubstr("G1.whole o: first at b1 h1 row 2 column 9"));
        EXPECT_THAT(computed.given().pattern,
                    HasSubstr("1 of 12 checked rows: only query row 2 of entry 1, head 1 (query tail)"));
        o.set_code(1, 1, 2, 9, code);
        computed.set("lse", 0, 1, 1, 0, computed.get("lse", 0, 1, 1, 0) + 0.001F);
        EXPECT_THAT(computed.given().message, HasSubstr("G3.whole lse"));
    }
}

/// A case of many rows, so that G2 and G2.mean see what each element may be off by.
Case wide_case() {
    Case c = split_case();
    c.nhead_q = 4;
    c.hdim_q = c.hdim_v = 64;
    c.seqlen_q = {20};
    c.seqlen_k = {400};
    c.mask = MaskType::bottom_right;
    c.window_right = 0;
    return c;
}

TEST(SplitGates, SeeAnOutputThatIsTooLargeWithinItsLimits) {
    Computed computed(wide_case());
    const CaseResult right = computed.given();
    EXPECT_EQ(right.outcome, Outcome::passed) << right.message;
    EXPECT_THAT(gates_of(right), testing::IsSupersetOf({"G2.whole:o", "G2.mean.whole:o"}));
    computed.each_o([](double o) { return 1.007 * o; });
    const std::vector<std::string> red = gates_of(computed.given(), true);
    EXPECT_THAT(red, testing::ElementsAre("G2.whole:o", "G2.mean.whole:o"));
}

/// Nobody knows how often the kernel of others splits: what ours writes with one number passes with every other one.
TEST(SplitGates, AcceptAnyNumberOfSplitsOfAKernelThatBringsNoPartialResults) {
    for (const DataType type : {DataType::fp16, DataType::fp8bf16})
        for (const Fill fill : {Fill::normal, Fill::uniform, Fill::rising}) {
            Case c = wide_case();
            c.nhead_q = 2;
            c.data_type = type;
            if (type == DataType::fp8bf16) c.qscale = QScale::pertensor;
            c.fill = fill;
            std::vector<std::unique_ptr<Computed>> written, judged;
            for (const std::int64_t splits : {1, 3, 50}) {
                c.split.num_splits = splits;
                written.push_back(std::make_unique<Computed>(c));
                judged.push_back(std::make_unique<Computed>(c));
            }
            for (const auto& theirs : written)
                for (const auto& asked : judged) {
                    asked->take_outputs_of(*theirs);
                    const CaseResult result = asked->given();
                    EXPECT_EQ(result.outcome, Outcome::passed)
                        << to_string(type) << ' ' << to_string(fill) << ' ' << theirs->splits()
                        << " splits, asked for " << asked->splits() << ": " << result.message;
                }
        }
}

/// One pass loses weights that are below half of P's smallest value beside the largest of all keys; in a split of their own they are the
/// largest and stay.
TEST(SplitGates, AcceptOnePassThatLosesSmallWeightsWhereSplitsKeepThem) {
    Case c = split_case();
    c.data_type = DataType::fp16;
    c.fill = Fill::zeros; // such errors are not independent: no G2
    c.scale_s = 1.0;
    Computed computed(c);
    const auto half = [](double x) { return reference::encode(ElementType::fp16, x); };
    for (std::int64_t b = 0; b < c.batch; ++b)
        for (std::int64_t h = 0; h < c.nhead_q; ++h) {
            for (std::int64_t i = 0; i < 3; ++i) computed.tensor("q").set_code(b, h, i, 0, half(1.0));
            for (std::int64_t j = 1; j < 300; ++j) computed.tensor("k").set_code(b, h, j, 0, half(-17.5));
            for (std::int64_t j = 0; j < 300; ++j)
                for (std::int64_t channel = 0; channel < 32; ++channel)
                    computed.tensor("v").set_code(b, h, j, channel, half(j == 0 ? 0x1p-6 : 0x1p14));
            for (std::int64_t i = 0; i < 3; ++i) computed.set("lse", b, h, i, 0, 7.5e-6F);
        }
    computed.each_o([](double) { return 0x1p-6; });
    EXPECT_EQ(computed.given().message, "");
    computed.each_o([](double) { return -0x1p-3; });
    EXPECT_THAT(computed.given().message, HasSubstr("G1.whole o"));
}

TEST(SplitGates, JudgeRowsOfNoKeyAndOfOneKeyThatComeWithoutPartialResults) {
    Case c = split_case();
    c.seqlen_q = {5};
    c.seqlen_k = {3};
    c.mask = MaskType::bottom_right; // rows 0 and 1 see nothing, row 2 one key
    c.window_right = 0;
    Computed computed(c);
    const CaseResult right = computed.given();
    EXPECT_EQ(right.outcome, Outcome::passed) << right.message;
    EXPECT_THAT(gates_of(right), testing::IsSupersetOf({"G5.2:o", "G5.3:o", "G5.9:o"}));
    const auto red_with = [&](std::int64_t row, std::uint32_t flipped) {
        GuardedTensor& o = computed.tensor("o");
        const std::uint32_t code = o.code(1, 1, row, 9);
        o.set_code(1, 1, row, 9, code ^ flipped);
        const std::vector<std::string> red = gates_of(computed.given(), true);
        o.set_code(1, 1, row, 9, code);
        return red;
    };
    EXPECT_THAT(red_with(1, 0x8000U), testing::ElementsAre("G5.2:o")) << "-0";
    EXPECT_THAT(red_with(2, 1U), testing::ElementsAre("G5.3:o")) << "one bit beside V";
    EXPECT_THAT(red_with(0, 0x7F80U), testing::Contains("G5.9:o")) << "infinity";
}

TEST(SplitGates, EdgeFillsDecideEverySplitAndTheWhole) {
    Case c = split_case();
    c.fill = Fill::edge_last;
    Computed computed(c);
    EXPECT_EQ(computed.verdict(), "");
    EXPECT_THAT(computed.seen(), testing::IsSupersetOf({"exact:o_acc", "exact:o"}));
    GuardedTensor& o = computed.tensor("o");
    o.set_code(0, 0, 0, 0, o.code(0, 0, 0, 0) ^ 1U);
    EXPECT_NE(computed.verdict(), "");
}

// e4m3 has 256 ranks at this head dimension. Rows see the first keys only, and these share the lowest one in every split.
TEST(SplitGates, EdgeFillsThatDecideNoRowOfAnySplitAreNotPassedOver) {
    Case c = split_case();
    c.fill = Fill::edge_last;
    c.data_type = DataType::fp8bf16;
    c.hdim_q = c.hdim_v = 64;
    c.seqlen_q = {7};
    c.seqlen_k = {600};
    c.mask = MaskType::top_left;
    c.window_right = 1;
    Computed undecided(c);
    EXPECT_THAT(undecided.verdict(), HasSubstr("exact:o_acc the fill decides none of the 28 rows"));
    c.mask = MaskType::no_mask; // the last split decides its rows
    Computed decided(c);
    EXPECT_EQ(decided.verdict(), "");
    EXPECT_THAT(decided.seen(), testing::Contains("exact:o_acc"));
    c.mask = MaskType::top_left;
    c.seqlen_k = {0};
    Computed empty(c);
    EXPECT_EQ(empty.verdict(), "");
    EXPECT_THAT(empty.seen(), testing::Not(testing::Contains("exact:o_acc")));
}

TEST(SplitGates, TheNumberOfSplitsIsTheDevicesWhereTheCaseHasNone) {
    Case c = split_case();
    c.split.num_splits = 0;
    Computed computed(c);
    // S-6 with 256 compute units of 64 lanes: B · H · mb = 4, U = 512.
    EXPECT_EQ(computed.args().partials.num_splits, 109);
    EXPECT_EQ(computed.verdict(), "");
}

// In fp32 0.68 · 25 is 17, a tie of e4m3; exactly it is above.
TEST(SplitGates, AProductThatIsRoundedToATieIsRight) {
    const auto cases = test::cases_of(
        "splitkv/plain[heads=6:2,hdim=80,seqlen=14:35,dtype=fp8,mask=t:18,21,bias=a:0,scale_s=0.3,scale_o=25,"
        "qscale=pertensor]@1783503509519003299");
    EXPECT_EQ(test::first_red(cases, test::launch_with(test::no_fault<targets::CacheFault>)), "");
}

} // namespace
} // namespace fmha::harness
