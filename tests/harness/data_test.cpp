// Data sets: their promises, and that nothing but seed and logical index decides a value.

#include "harness/cases/case_problem.hpp"
#include "harness/data/bwd_tensors.hpp"
#include "harness/data/fwd_fill.hpp"
#include "harness/data/fwd_tensors.hpp"
#include "harness/data/random.hpp"
#include "harness/families/family.hpp"
#include "harness/gates/attention_outputs.hpp"
#include "reference/forward.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/harness/gate_support.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace fmha::harness::test {
namespace {

double value(const GuardedTensor& tensor, std::int64_t b, std::int64_t h, std::int64_t row,
             std::int64_t col) {
    return reference::decode(tensor.layout().type, tensor.code(b, h, row, col));
}

float sink_logit(const FwdTensors& tensors, std::int64_t h) {
    return std::bit_cast<float>(tensors.tensor("sink_logits").code(0, 0, 0, h));
}

TEST(Random, IsNormalUniformAndReproducible) {
    const Random random(7, 3);
    double sum = 0.0, square = 0.0, uniform = 0.0;
    constexpr int n = 200'000;
    for (std::uint64_t i = 0; i < n; ++i) {
        const double x = random.normal(i);
        sum += x;
        square += x * x;
        uniform += random.uniform(i);
        ASSERT_EQ(x, Random(7, 3).normal(i));
    }
    // Six standard deviations of each mean.
    EXPECT_NEAR(sum / n, 0.0, 6.0 / std::sqrt(n));
    EXPECT_NEAR(square / n, 1.0, 6.0 * std::sqrt(2.0 / n));
    EXPECT_NEAR(uniform / n, 0.5, 6.0 * std::sqrt(1.0 / 12.0 / n));
    EXPECT_NE(random.bits(0), Random(8, 3).bits(0));
    EXPECT_NE(random.bits(0), Random(7, 4).bits(0));
}

TEST(Data, BytesOfACaseNeverChange) {
    // A changed generator would silently change every case that has a name already.
    const Case c = small_case();
    const FwdTensors tensors(c, Fp8Flavour::ocp);
    const TensorView q = tensors.args().q;
    std::uint64_t sum = 0;
    for (std::int64_t d = 0; d < 64; ++d) sum = sum * 31 + load_code(q.data, q.type, q.offset(1, 1, 69, d));
    EXPECT_EQ(sum, 4803482610135769783U);
}

TEST(Data, DoesNotDependOnLayoutOrStrides) {
    const Case plain = small_case();
    Case other = plain;
    other.iperm = other.operm = Layout::bshd;
    other.stride_padding = 24;
    other.v_layout = VLayout::column;
    FwdTensors a(plain, Fp8Flavour::ocp), b(other, Fp8Flavour::ocp);
    for (const char* name : {"q", "k", "v"})
        for (std::int64_t e = 0; e < 2; ++e)
            for (std::int64_t h = 0; h < 2; ++h)
                for (std::int64_t i = 0; i < 70; ++i)
                    for (std::int64_t d = 0; d < 64; ++d)
                        ASSERT_EQ(a.tensor(name).code(e, h, i, d), b.tensor(name).code(e, h, i, d)) << name;
    // The same arithmetic on the same values gives the same bits (B.6.8).
    const FittingHostKernel source;
    const auto bits = [&](FwdTensors& tensors, const Case& c) {
        source.planned(to_problem(c, "gfx950"), nullptr).instance->launch(tensors.args(), {});
        return attention_outputs(reference::attention_of(tensors.args()));
    };
    EXPECT_EQ(bits(a, plain).first_difference(bits(b, other)), "");
}

TEST(Data, PaddingIsPoisonAndLogicalInputsAreNot) {
    Case c = small_case();
    c.length_form_k = LengthForm::seqlen;
    c.seqlen_k = {90, 33};
    FwdTensors tensors(c, Fp8Flavour::ocp);
    for (const Poison poison : {Poison::nan, Poison::huge}) {
        tensors.refill(poison);
        const std::uint32_t code = poison_code(ElementType::fp16, poison);
        const GuardedTensor& k = tensors.tensor("k");
        EXPECT_EQ(k.code(0, 0, 0, 64), code) << "between rows";
        EXPECT_EQ(k.code(1, 1, 33, 0), code) << "beyond the logical length";
        EXPECT_EQ(k.code(0, 0, 0, -1), code) << "in the guard";
        EXPECT_NE(k.code(1, 1, 32, 63), code);
        EXPECT_EQ(tensors.tensor("o").code(0, 0, 0, 0), code);
    }
}

TEST(Data, WideStridesTakeNoMemoryAndStillHaveGuards) {
    Case c = small_case();
    c.wide_tensor = "k";
    c.wide_batch_stride = (std::int64_t{1} << 32) + 64;
    const CaseResult result = run_right(c);
    EXPECT_EQ(result.outcome, Outcome::passed) << result.message;
    c.wide_tensor = "o";
    const CaseResult stray = run_spoiled(c, [](const FwdArgs& args) {
        store_code(args.o.data, args.o.type, args.o.offset(1, 0, 0, 0) - 1, 0x3C00U);
    });
    EXPECT_FALSE(verdict(stray, "G5.5").passed);
}

std::string refusal(Case c, std::string_view tensor) {
    c.wide_tensor = tensor;
    c.wide_batch_stride = std::int64_t{1} << 32;
    try {
        static_cast<void>(family_of(c.family).bytes(c, Fp8Flavour::ocp, 1));
        return {};
    } catch (const InputError& error) {
        return error.what();
    }
}

TEST(Data, EveryTensorWithABatchStrideAndNoOtherCanBeWide) {
    const auto names = [](std::string_view tensor, std::string_view allowed) {
        return fmt::format(
            "wide_tensor={}: expected a tensor of this case whose entries, slots or pages lie a "
            "stride apart: {}",
            tensor, allowed);
    };
    Case c = small_case();
    EXPECT_EQ(refusal(c, "w"), names("w", "q, k, v, o, lse"));
    c.lse = false;
    c.bias = BiasType::elementwise;
    c.bias_rank = 1;
    EXPECT_EQ(refusal(c, "bias"), names("bias", "q, k, v, o")) << "all entries share it";
    c.bias_rank = 2;
    EXPECT_EQ(refusal(c, "bias"), "");
    EXPECT_EQ(refusal(c, "lse"), names("lse", "q, k, v, o, bias"));
    c.mode = Mode::group;
    EXPECT_EQ(refusal(c, "q"),
              "wide_tensor=q: this case has no tensor whose entries, slots or pages lie a stride apart");
    c.family = ApiFamily::fwd_pagedkv;
    c.cache.page_size = 128;
    EXPECT_EQ(refusal(c, "o"), names("o", "k, v"));
    EXPECT_EQ(refusal(c, "k"), "");
    Case backward = small_case();
    backward.family = ApiFamily::bwd;
    EXPECT_EQ(refusal(backward, "dbias"), names("dbias", "q, k, v, o, lse, d_o, d, dq, dk, dv"));
}

TEST(Data, AWideGradientLiesWhereItsStrideSays) {
    Case c = small_case();
    c.family = ApiFamily::bwd;
    c.wide_tensor = "dk";
    c.wide_batch_stride = (std::int64_t{1} << 32) + 64;
    const BwdTensors tensors(c, Fp8Flavour::ocp);
    EXPECT_EQ(tensors.args().dk.batch_stride, c.wide_batch_stride);
    EXPECT_LT(tensors.args().dv.batch_stride, 1 << 20);
    EXPECT_LT(family_of(c.family).bytes(c, Fp8Flavour::ocp, 1).tensors, 1 << 22);
}

TEST(Data, EveryFillSeparatesTypesGrid) {
    // Encoding a stored value again changes nothing, and every value is finite.
    for (const DataType type :
         {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp8bf16, DataType::bf8})
        for (const Fill fill : {Fill::normal, Fill::sharp, Fill::indexed, Fill::zeros, Fill::huge,
                                Fill::uniform, Fill::integers, Fill::edge_last, Fill::edge_first,
                                Fill::rising, Fill::shifted, Fill::heavy_tailed}) {
            Case c = small_case();
            c.data_type = type;
            c.fill = fill;
            FwdTensors tensors(c, Fp8Flavour::fnuz);
            for (const char* name : {"q", "k", "v"})
                for (std::int64_t d = 0; d < 64; ++d)
                    ASSERT_TRUE(std::isfinite(value(tensors.tensor(name), 1, 1, 69, d)))
                        << name << ' ' << to_string(type);
        }
}

TEST(Data, RandomOperandsAreNoSubnormalFp16) {
    // CDNA 2's matrix unit would take them as 0, and a gradient that hangs on one of them alone is lost.
    for (const Fill fill :
         {Fill::normal, Fill::sharp, Fill::indexed, Fill::uniform, Fill::rising, Fill::heavy_tailed}) {
        Case c = small_case();
        c.family = ApiFamily::bwd;
        c.fill = fill;
        c.seqlen_q = c.seqlen_k = {1500};
        const FamilyTensors<BwdArgs> tensors(c, Fp8Flavour::ocp);
        for (const char* name : {"q", "k", "v", "d_o"})
            for (std::int64_t i = 0; i < 1500; ++i)
                for (std::int64_t d = 0; d < 64; ++d) {
                    const double x = std::abs(value(tensors.tensor(name), 0, 0, i, d));
                    ASSERT_TRUE(x == 0.0 || x >= 0x1p-14) << name << ' ' << i << ' ' << d << ' ' << x;
                }
    }
}

TEST(Data, ShiftedScoresAreLowByTheSameWhateverTheScale) {
    for (const double scale : {0.0, 0.5, -0.125})
        for (const DataType type : {DataType::fp32, DataType::fp16, DataType::bf16}) {
            Case c = small_case();
            c.data_type = type;
            c.fill = Fill::shifted;
            c.scale_s = scale;
            const FwdTensors tensors(c, Fp8Flavour::ocp);
            for (const std::int64_t i : {0, 69})
                for (const std::int64_t j : {0, 89}) {
                    double score = 0.0;
                    for (std::int64_t d = 0; d < 64; ++d)
                        score +=
                            value(tensors.tensor("q"), 1, 1, i, d) * value(tensors.tensor("k"), 1, 1, j, d);
                    // Rounded to 8 bits twice.
                    EXPECT_NEAR(score * static_cast<double>(resolved_scale(c)), -1e5, 800.0) << scale;
                }
        }
}

TEST(Data, AFewHeavyTailedRowsAreAHundredTimesLarger) {
    Case c = small_case();
    c.fill = Fill::heavy_tailed;
    c.seqlen_q = c.seqlen_k = {1600};
    const FwdTensors tensors(c, Fp8Flavour::ocp);
    const auto heavy_rows = [&](const char* name) {
        int heavy = 0;
        for (std::int64_t i = 0; i < 1600; ++i) {
            double largest = 0.0;
            for (std::int64_t d = 0; d < 64; ++d)
                largest = std::max(largest, std::abs(value(tensors.tensor(name), 1, 0, i, d)));
            EXPECT_TRUE(largest < 7.0 || largest > 70.0) << name << ' ' << i;
            heavy += largest > 70.0 ? 1 : 0;
        }
        return heavy;
    };
    EXPECT_NEAR(heavy_rows("q"), 100, 40);
    EXPECT_NEAR(heavy_rows("v"), 100, 40);
    EXPECT_EQ(heavy_rows("k"), 0) << "such a key would win in every row";
}

TEST(Data, HugeDotProductsAreExactlyZero) {
    Case c = small_case();
    c.fill = Fill::huge;
    FwdTensors tensors(c, Fp8Flavour::ocp);
    double largest = 0.0, dot = 0.0;
    for (std::int64_t d = 0; d < 64; ++d) {
        const double product =
            value(tensors.tensor("q"), 0, 0, 5, d) * value(tensors.tensor("k"), 0, 0, 9, d);
        largest = std::max(largest, std::abs(product));
        dot += product;
    }
    EXPECT_EQ(dot, 0.0);
    EXPECT_EQ(largest, 0x1p30);
}

TEST(Data, IndexedRowsDiffer) {
    Case c = small_case();
    c.fill = Fill::indexed;
    FwdTensors tensors(c, Fp8Flavour::ocp);
    for (std::int64_t j = 0; j + 1 < 90; ++j)
        EXPECT_NE(std::abs(value(tensors.tensor("v"), 0, 0, j, 0)),
                  std::abs(value(tensors.tensor("v"), 0, 0, j + 1, 0)));
}

TEST(Data, SinkLogitsAndSlopes) {
    Case c = small_case();
    c.nhead_q = 8;
    c.nhead_k = 2;
    c.sink_logits = SinkLogits::saturated;
    FwdTensors tensors(c, Fp8Flavour::ocp);
    EXPECT_TRUE(std::isinf(sink_logit(tensors, 1)));
    EXPECT_GE(sink_logit(tensors, 0), 30.0F);
    EXPECT_LE(sink_logit(tensors, 7), 60.0F);
    c.sink_logits = SinkLogits::neutral;
    FwdTensors neutral(c, Fp8Flavour::ocp);
    for (std::int64_t h = 0; h < c.nhead_q; ++h)
        EXPECT_EQ(std::isinf(sink_logit(neutral, h)), h % 2 == 0) << h;
    EXPECT_THAT(default_alibi_slopes(4), testing::ElementsAre(0x1p-2F, 0x1p-4F, 0x1p-6F, 0x1p-8F));
    EXPECT_THAT(default_alibi_slopes(3), testing::ElementsAre(0x1p-4F, 0x1p-8F, 0x1p-2F));
    EXPECT_EQ(default_alibi_slopes(12).size(), 12U);
}

TEST(EdgeCode, EveryStepOfRankIsWorthItsGap) {
    for (const ElementType type : {ElementType::fp16, ElementType::bf16, ElementType::fp32,
                                   ElementType::fp8_ocp, ElementType::fp8_fnuz, ElementType::bf8_fnuz})
        for (const std::int64_t hdim : {32, 64, 128, 256}) {
            const double sigma = 1.0 / std::sqrt(static_cast<double>(hdim));
            const auto code = EdgeCode::make(type, false, hdim, sigma);
            ASSERT_TRUE(code);
            const auto logit = [&](std::int64_t rank) {
                double sum = 0.0;
                for (std::size_t p = 0; p < code->digits().size(); ++p) {
                    const auto& digit = code->digits()[p];
                    EXPECT_EQ(reference::round_to(type, digit.weight), digit.weight);
                    EXPECT_EQ(reference::round_to(type, static_cast<double>(code->digit(rank, p))),
                              static_cast<double>(code->digit(rank, p)));
                    sum += static_cast<double>(digit.channels * code->digit(rank, p)) * digit.weight;
                }
                return sum * sigma;
            };
            for (std::int64_t rank = 1; rank < code->capacity(); rank += 1 + rank / 7)
                EXPECT_GE(logit(rank) - logit(rank - 1), 20.0)
                    << to_string(type) << ' ' << hdim << ' ' << rank;
            EXPECT_FALSE(code->decides(0, code->capacity() + 1, true));
            EXPECT_TRUE(code->decides(1 + 1, code->capacity() + 1, true));
            EXPECT_FALSE(code->decides(code->capacity(), code->capacity() + 1, false));
        }
}

} // namespace
} // namespace fmha::harness::test
