// Weights of one operation (tolerances B.2) at logits so large that products are rounded by more than P keeps: rows of one key, rows of two equal
// keys, rows of many, with and without sinks, by the host's one team and by emulated teams.

#include "kernels/programs/formats.hpp"
#include "team_agreement.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <type_traits>

namespace fmha::hip_target::test {
namespace {

const DataType types[] = {DataType::fp16, DataType::bf16, DataType::fp8bf16, DataType::fp8fp32};
const float magnitudes[] = {1e4F, 1e5F, 1e6F, 0x1p24F, 0x1p28F};

/// The logits of rows differ, up to some `magnitude`.
Shape large_shape(DataType type, std::int64_t keys) {
    Shape shape = team_shape(type, 32);
    shape.extra = 0;
    shape.seqlen_k = {keys};
    if (!kernels::adds_tiles_apart(type)) return shape;
    // Lines of channels and of keys are whole units with what lies behind them.
    shape.v_layout = VLayout::column;
    shape.hdim_q = shape.hdim_v = 16 + keys % 16;
    shape.padding = 16 - keys % 16;
    return shape;
}
void enlarge(FwdProblem& problem, float magnitude) {
    problem.args().score.scale_s = magnitude * 0.1234567F;
}

/// Makes the first two keys of a head one.
void repeat_first_key(const FwdProblem& problem) {
    const TensorView& k = problem.args().k;
    auto* const keys = static_cast<std::uint8_t*>(k.data);
    const std::int64_t bytes = element_bits(k.type) / 8;
    for (std::int64_t c = 0; c < problem.args().shape.hdim_q; ++c)
        std::memcpy(keys + bytes * k.offset(0, 0, 1, c), keys + bytes * k.offset(0, 0, 0, c),
                    static_cast<std::size_t>(bytes));
}

double element(const TensorView& of, std::int64_t row, std::int64_t c) {
    const std::int64_t at = of.offset(0, 0, row, c);
    std::uint32_t code = 0;
    std::memcpy(&code, static_cast<const std::uint8_t*>(of.data) + at * element_bits(of.type) / 8,
                static_cast<std::size_t>(element_bits(of.type) / 8));
    return kernels::decode(code, kernels::format_of(of.type));
}

/// The largest relative error of O among rows whose `keys` keys are equal.
double error_of_equal_keys(const FwdProblem& problem, std::int64_t keys) {
    double worst = 0.0;
    const Shape& shape = problem.shape();
    for (std::int64_t h = 0; h < shape.nhead_q; ++h)
        for (std::int64_t row = 0; row < shape.seqlen_q.front(); ++row)
            for (std::int64_t c = 0; c < shape.hdim_v; ++c) {
                double mean = 0.0;
                for (std::int64_t j = 0; j < keys; ++j)
                    mean += element(problem.args().v, j, c) / static_cast<double>(keys);
                const double error = std::abs(problem.o(0, h, row, c) - mean);
                worst = std::fmax(worst, error == 0.0 ? 0.0 : error / std::abs(mean));
            }
    return worst;
}

/// Of O, which the division may round once more in fp32.
double allowed(const FwdProblem& problem, std::int64_t keys) {
    const bool in_fp32 = problem.args().o.type == ElementType::fp32;
    const double step = in_fp32 ? 0x1p-22 : problem.args().o.type == ElementType::fp16 ? 0x1p-11 : 0x1p-8;
    return keys == 1 && !in_fp32 ? 0.0 : step * (1.0 + 0x1p-12);
}

/// Computes `problem` by emulated teams whose contexts `Wrap` makes, and returns the error of its equal keys.
template <template <class> class Wrap>
double emulated_error(FwdProblem& problem, std::int64_t keys) {
    emulate_wrapped<Wrap>(team_kernel(problem, 2, 64, 32), problem.args());
    return error_of_equal_keys(problem, keys);
}

TEST(LargeLogits, GiveEqualKeysTheirMean) {
    for (const DataType type : types)
        for (const float magnitude : magnitudes)
            for (const std::int64_t keys : {1, 2}) {
                FwdProblem problem(large_shape(type, keys));
                enlarge(problem, magnitude);
                if (keys == 2) repeat_first_key(problem);
                const KernelConfig kernel = team_kernel(problem, 2, 64, 32);
                const std::string name = std::string(to_string(type)) + " " + std::to_string(magnitude);
                EXPECT_LE(emulated_error<std::type_identity_t>(problem, keys), allowed(problem, keys))
                    << name;
                EXPECT_EQ(judge(problem, numerics_of(kernel)).complaint(true), "") << name;
                problem.poison_outputs();
                host_target::run_kernel(kernel, problem.args());
                EXPECT_LE(error_of_equal_keys(problem, keys), allowed(problem, keys)) << name;
                EXPECT_EQ(host_target::test::judge(problem, kernel).complaint(true), "") << name;
            }
}

const TeamVariant variants[] = {
    {"fp16", 2, 64, 32, DataType::fp16, changes::none},
    {"bf16, causal", 2, 64, 32, DataType::bf16,
     [](Shape& s) {
         s.mask = {MaskType::bottom_right, -1, 0, 0};
     }},
    {"fp16, sinks", 2, 64, 32, DataType::fp16, [](Shape& s) { s.sink_logit = true; }},
    {"bf16, window, sinks", 2, 64, 32, DataType::bf16,
     [](Shape& s) {
         s.sink_logit = true;
         s.mask = {MaskType::top_left, 100, 0, 4};
     }},
    {"bf16, 256 channels, whose maxima lag behind", 2, 64, 256, DataType::bf16, changes::none},
    {"e4m3, sinks", 2, 64, 32, DataType::fp8bf16, [](Shape& s) { s.sink_logit = true; }},
};

Shape shape_of_large(const TeamVariant& variant) {
    Shape shape = large_shape(variant.type, 150);
    if (!kernels::adds_tiles_apart(variant.type)) shape.hdim_q = shape.hdim_v = variant.channels;
    variant.change(shape);
    return shape;
}

TEST(LargeLogits, OfManyKeysAgreeWithTheReference) {
    for (const TeamVariant& variant : variants)
        for (const float magnitude : magnitudes) {
            FwdProblem problem(shape_of_large(variant));
            enlarge(problem, magnitude);
            const KernelConfig kernel = team_kernel(problem, variant);
            emulate_wrapped<std::type_identity_t>(kernel, problem.args());
            EXPECT_EQ(judge(problem, numerics_of(kernel)).complaint(true), "")
                << variant.name << " " << magnitude;
            host_target::run_kernel(kernel, problem.args());
            EXPECT_EQ(host_target::test::judge(problem, kernel).complaint(true), "")
                << variant.name << " on the host " << magnitude;
        }
}

/// Divides outputs by the weight of the largest score as it was before it was rounded to P's type.
template <class Context>
class DivisorNotRounded : public Context {
  public:
    using Context::Context;

    float narrowed(float weight) const { return weight; }
};
/// Takes the weight of the largest score for that of its type: without what its product was rounded by.
template <class Context>
class TopWithoutResidue : public Context {
  public:
    using Context::Context;

    float top_weight(float, kernels::ScoreUnit unit) const { return std::exp2(unit.shift); }
};
/// Multiplies products by their factor, no power of two, however large they are.
template <class Context>
class NeverCoarse : public Context {
  public:
    using Context::Context;
    using Context::exp2_minus;
    using Context::raise_to_row_max;

    template <class Scores, class Rows>
    void raise_to_row_max(Rows& top, Rows& shrink, Scores& scores, Rows& reference, kernels::ScoreUnit unit) {
        Context::raise_to_row_max(top, shrink, scores, reference, fine(unit));
    }
    template <class Scores, class Rows>
    void exp2_minus(Scores& scores, const Rows& top, const Rows& reference, kernels::ScoreUnit unit) {
        Context::exp2_minus(scores, top, reference, fine(unit));
    }
    float top_weight(float top, kernels::ScoreUnit unit) const {
        return Context::top_weight(top, fine(unit));
    }

  private:
    static kernels::ScoreUnit fine(kernels::ScoreUnit unit) {
        unit.power_from = __builtin_inff();
        return unit;
    }
};

template <template <class> class Wrap>
double error_of_one_key(DataType type, float magnitude) {
    FwdProblem problem(large_shape(type, 1));
    enlarge(problem, magnitude);
    return emulated_error<Wrap>(problem, 1);
}

TEST(LargeLogits, ShowMistakesOfTheLargestWeight) {
    EXPECT_GT(error_of_one_key<DivisorNotRounded>(DataType::fp16, 1e5F), 0.0);
    EXPECT_GT(error_of_one_key<DivisorNotRounded>(DataType::bf16, 1e6F), 0.0);
    EXPECT_GT(error_of_one_key<TopWithoutResidue>(DataType::fp16, 1e5F), 0.0);
    EXPECT_GT(error_of_one_key<TopWithoutResidue>(DataType::fp8fp32, 1e4F), 0x1p-12);
    for (const DataType type : {DataType::fp16, DataType::bf16})
        EXPECT_FALSE(error_of_one_key<NeverCoarse>(type, 0x1p40F) == 0.0);
    EXPECT_FALSE(error_of_one_key<NeverCoarse>(DataType::fp8bf16, 0x1p24F) == 0.0);
}

// Where no product is rounded there is no residue, and references fall where maxima rise, also where the factor changes.
TEST(LargeLogits, HaveReferencesInOrder) {
    for (const float in_logits : {0.3F, 0.5F, 0.71F, 0.9999999F, 1.0F, 1.7F})
        for (const float shift : {0.0F, 8.0F}) {
            const auto unit = kernels::ScoreUnit::of(in_logits, shift, 0x1p20F);
            float before = unit.reference(-0x1p30F);
            for (float top = -0x1p30F; top <= 0x1p30F;
                 top = std::nextafter(top + 3e-3F * std::abs(top), 0x1p31F)) {
                const float reference = unit.reference(top), factor = unit.factor(top);
                EXPECT_LE(reference, before) << in_logits << " " << top;
                EXPECT_GE(factor, in_logits);
                EXPECT_LT(factor, 2.0F * in_logits);
                before = reference;
                if (std::abs(top * in_logits) < 0x1p19F) {
                    EXPECT_EQ(factor, in_logits);
                } else if (std::abs(top * in_logits) >= 0x1p20F) {
                    int exponent = 0;
                    EXPECT_EQ(std::frexp(factor, &exponent), 0.5F);
                }
                if (std::abs(top) < 0x1p-9F) top = 0x1p-9F;
            }
            EXPECT_GT(unit.reference(-__builtin_inff()), 0x1p100F);
            EXPECT_LT(unit.reference(-__builtin_inff()), __builtin_inff());
        }
}

} // namespace
} // namespace fmha::hip_target::test
