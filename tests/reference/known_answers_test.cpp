// Worked examples of semantics section 21, forward.
#include "reference/forward.hpp"
#include "reference/numerics/dropout.hpp"
#include "reference/numerics/mask.hpp"
#include "reference/numerics/position_bias.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace fmha::reference {
namespace {

constexpr float no_sink = -std::numeric_limits<float>::infinity();
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

struct Example {
    std::string name;
    MaskArgs mask;
    std::vector<double> o, lse;
    float soft_cap = 0.0F;
    float sink = no_sink;
    float slope = 0.0F;
    std::vector<float> k{1, 0, -1, 2}, v{1, 2, 4, -8};
};

const MaskArgs unmasked{};
const MaskArgs top_left_causal{MaskType::top_left, -1, 0, 0};
const MaskArgs bottom_right_causal{MaskType::bottom_right, -1, 0, 0};

const std::vector<Example> examples{
    {"plain", unmasked, {-4.61190821, -6.76231966, 2.88009817}, {2.44018970, 4.14507794, 1.44018970}},
    {"soft_cap_2",
     unmasked,
     {-3.59698632, -3.74972262, 2.59564932},
     {2.14048952, 2.54010214, 1.41943627},
     2.0F},
    {"top_left_causal", top_left_causal, {1, 1.11920292, 3.24045134}, {1, 2.12692801, 1.40760596}},
    {"bottom_right_causal",
     bottom_right_causal,
     {1.26894142, 1.16493915, 2.88009817},
     {1.31326169, 2.14293163, 1.44018970}},
    {"bottom_right_window_1_0",
     {MaskType::bottom_right, 1, 0, 0},
     {1.26894142, 2.23840584, 3.43088952},
     {1.31326169, 0.126928011, 1.04858735}},
    {"sink_logit_1",
     unmasked,
     {-3.72865412, -6.48313284, 1.75197590},
     {2.65278406, 4.18724006, 1.93726984},
     0.0F,
     1.0F},
    {"alibi_top_left_window",
     {MaskType::top_left, -1, -1, 0},
     {-1.70626528, -5.99915789, 3.26484584},
     {1.63097806, 3.24451671, 1.26475725},
     0.0F,
     no_sink,
     0.5F},
    {"alibi_no_mask",
     unmasked,
     {-3.07774644, -7.12089298, 2.83347682},
     {1.72100313, 3.59938134, 0.803803098},
     0.0F,
     no_sink,
     0.5F},
    {"alibi_bottom_right_causal",
     bottom_right_causal,
     {1.37754067, 1.29262811, 2.83347682},
     {1.47407698, 2.24131130, 2.30380310},
     0.0F,
     no_sink,
     0.5F},
    {"more_queries_than_keys",
     bottom_right_causal,
     {0, 1, 1.73105858},
     {minus_infinity, 2, 0.313261688},
     0.0F,
     no_sink,
     0.0F,
     {1, 0},
     {1, 2}},
    {"more_queries_than_keys_with_sink_logit",
     bottom_right_causal,
     {0, 0.817574476, 0.784949573},
     {0.5, 2.20141328, 1.10413061},
     0.0F,
     0.5F,
     0.0F,
     {1, 0},
     {1, 2}},
};

TensorView column_of(std::vector<float>& values) {
    return {values.data(), ElementType::fp32, 0, 0, 1, 1};
}

class KnownAnswer : public testing::TestWithParam<std::tuple<Example, Oracle>> {};

TEST_P(KnownAnswer, MatchesToNineDigits) {
    auto [example, oracle] = GetParam();
    std::vector<float> q{1, 2, -1};
    FwdArgs args;
    args.shape.batch = args.shape.nhead_q = args.shape.nhead_k = args.shape.hdim_q = args.shape.hdim_v = 1;
    args.shape.seqlen_q = 3;
    args.shape.seqlen_k = static_cast<std::int64_t>(example.k.size());
    args.q = column_of(q);
    args.k = column_of(example.k);
    args.v = column_of(example.v);
    args.mask = example.mask;
    args.score.scale_s = 1.0F;
    args.score.logits_soft_cap = example.soft_cap;
    args.score.sink_logit = &example.sink;
    if (example.slope > 0.0F) {
        args.score.bias_type = BiasType::alibi;
        args.score.alibi_slopes = &example.slope;
    }
    const ForwardRows result = forward(args, all_rows(args), {}, oracle);
    ASSERT_EQ(result.o.rows(), 3);
    for (std::int64_t r = 0; r < 3; ++r) {
        const double o = example.o[static_cast<std::size_t>(r)],
                     lse = example.lse[static_cast<std::size_t>(r)];
        EXPECT_NEAR(result.o(r, 0), o, 5e-9 * std::abs(o)) << "row " << r;
        if (std::isinf(lse))
            EXPECT_EQ(result.lse(r), lse) << "row " << r;
        else
            EXPECT_NEAR(result.lse(r), lse, 5e-9 * std::abs(lse)) << "row " << r;
    }
}

INSTANTIATE_TEST_SUITE_P(Section21, KnownAnswer,
                         testing::Combine(testing::ValuesIn(examples),
                                          testing::Values(Oracle::row_by_row, Oracle::matrix)),
                         [](const auto& test) {
                             const bool by_row = std::get<1>(test.param) == Oracle::row_by_row;
                             return std::get<0>(test.param).name + (by_row ? "_row" : "_matrix");
                         });

TEST(AlibiSlopes, MatchSection21) {
    const auto powers = [](std::vector<double> exponents) {
        std::vector<float> slopes;
        for (const double e : exponents) slopes.push_back(static_cast<float>(std::pow(2.0, -e)));
        return slopes;
    };
    EXPECT_EQ(default_alibi_slopes(1), powers({8}));
    EXPECT_EQ(default_alibi_slopes(2), powers({4, 8}));
    EXPECT_EQ(default_alibi_slopes(3), powers({4, 8, 2}));
    EXPECT_EQ(default_alibi_slopes(4), powers({2, 4, 6, 8}));
    EXPECT_EQ(default_alibi_slopes(5), powers({2, 4, 6, 8, 1}));
    EXPECT_EQ(default_alibi_slopes(8), powers({1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(default_alibi_slopes(12), powers({1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5}));
}

TEST(AlibiBias, IsExactBeyondSixteenBits) {
    const MaskArgs window{MaskType::top_left, 5, 5, 0};
    EXPECT_EQ(alibi_bias(window, 0.5, 1, 1, 0, 70001), -35000.5);
    EXPECT_EQ(alibi_bias(window, 1.0, 1, 1, 0, (std::int64_t{1} << 24) + 1), -16777217.0);
}

TEST(Philox, MatchesTheKnownAnswers) {
    using Words = std::array<std::uint32_t, 4>;
    EXPECT_EQ(philox4x32_7({0, 0, 0, 0}, {0, 0}), (Words{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
    EXPECT_EQ(philox4x32_7({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
              (Words{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
    EXPECT_EQ(philox4x32_7({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              (Words{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}));
}

struct ByteExample {
    std::int64_t i, j;
    int first, second, third;
};

TEST(DropoutBytes, MatchSection21) {
    constexpr std::array<ByteExample, 14> expected{{{0, 0, 123, 79, 191},
                                                    {0, 1, 195, 36, 204},
                                                    {0, 31, 250, 36, 74},
                                                    {0, 32, 230, 163, 52},
                                                    {1, 0, 181, 20, 181},
                                                    {7, 5, 58, 93, 143},
                                                    {8, 0, 26, 236, 239},
                                                    {15, 31, 86, 169, 204},
                                                    {16, 0, 242, 8, 88},
                                                    {24, 17, 31, 58, 13},
                                                    {31, 31, 90, 227, 130},
                                                    {32, 0, 97, 245, 151},
                                                    {33, 65, 16, 174, 67},
                                                    {100, 200, 62, 193, 45}}};
    for (const auto& [i, j, first, second, third] : expected) {
        EXPECT_EQ(random_byte({0, 0, i, j}, 1, 1, 0), first) << i << ',' << j;
        EXPECT_EQ(random_byte({1, 2, i, j}, 4, 123, 1024), second) << i << ',' << j;
        EXPECT_EQ(random_byte({0, 1, i, j}, 2, 34534564645, 7876878876864), third) << i << ',' << j;
    }
}

TEST(DropoutConstants, MatchTheTableOfD2) {
    const std::vector<std::pair<float, int>> expected{{0.1F, 229}, {0.123F, 223}, {0.17F, 211}, {0.2F, 204},
                                                      {0.3F, 178}, {0.5F, 127},   {0.9F, 25},   {0.99F, 2}};
    for (const auto& [p_drop, threshold] : expected) {
        const DropoutConstants constants = dropout_constants(p_drop);
        EXPECT_EQ(constants.threshold, threshold) << p_drop;
        EXPECT_EQ(constants.p_undrop, 1.0F - p_drop);
        EXPECT_EQ(constants.rescale, 1.0F / (1.0F - p_drop));
    }
}

TEST(WindowCoordinates, MatchTheChecksOfM3) {
    const auto expect = [](const MaskArgs& mask, std::int64_t sk, std::int64_t x, std::int64_t y) {
        const WindowCoordinates window = window_coordinates(mask, 5, sk);
        EXPECT_EQ(window.x, x);
        EXPECT_EQ(window.y, y);
    };
    expect(top_left_causal, 8, 1, 5);
    expect(bottom_right_causal, 8, 4, 5);
    expect({MaskType::top_left, 1, 0, 0}, 8, 1, 2);
    expect({MaskType::bottom_right, 4, 0, 0}, 8, 4, 2);
    expect({MaskType::top_left, -1, -1, 0}, 8, 8, 5);
    expect({MaskType::bottom_right, -1, -1, 0}, 8, 8, 5);
    expect(bottom_right_causal, 4, 0, 5);
    EXPECT_FALSE(sees_any_key(bottom_right_causal, 5, 4, 0));
    EXPECT_TRUE(sees_any_key(bottom_right_causal, 5, 4, 1));
}

// A window that hides key 0 from the last row alone has sink tokens, a window that hides none has not.
TEST(SinkTokens, BeginWhereAWindowHidesOneKey) {
    EXPECT_TRUE(sees_as_sink_token({MaskType::top_left, 3, 0, 1}, 5, 8, 4, 0));
    EXPECT_TRUE(visible({MaskType::top_left, 3, 0, 1}, 5, 8, 4, 0));
    EXPECT_FALSE(visible({MaskType::top_left, 3, 0, 0}, 5, 8, 4, 0));
    EXPECT_FALSE(sees_as_sink_token({MaskType::top_left, 4, 0, 1}, 5, 8, 4, 0));
}

} // namespace
} // namespace fmha::reference
