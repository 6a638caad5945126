// The limits of tolerances B.1 to B.4.
#include "reference/bounds.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/reference/random_problem.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fmha::reference {
namespace {

using test::RandomProblem;

TEST(Growth, FollowsItsFormulas) {
    EXPECT_DOUBLE_EQ(strict_growth(100, 0x1p-24), 100 * 0x1p-24 / (1 - 100 * 0x1p-24));
    EXPECT_EQ(strict_growth(8192, 0x1p-13), std::numeric_limits<double>::max());
    EXPECT_DOUBLE_EQ(probable_growth(400, 0x1p-24), std::expm1(160 * 0x1p-24 + 400 * 0x1p-48));
    Numerics kernel;
    EXPECT_EQ(accumulation_growth(400, kernel), probable_growth(400, 0x1p-24));
    kernel.truncating = true;
    EXPECT_EQ(accumulation_growth(400, kernel), strict_growth(400, 0x1p-24));
    kernel = {};
    kernel.u_a = 0x1p-13;
    EXPECT_EQ(accumulation_growth(400, kernel), strict_growth(400, 0x1p-13));
    kernel.promotion_interval = 128;
    EXPECT_EQ(accumulation_growth(400, kernel), strict_growth(128, 0x1p-13) + probable_growth(4, 0x1p-24));
    EXPECT_EQ(accumulation_growth(100, kernel), strict_growth(100, 0x1p-13));
}

TEST(DeclaredNumerics, AreThoseOfTheTypes) {
    const Numerics fp16 = kernel_numerics(element_types(DataType::fp16, Fp8Flavour::ocp));
    EXPECT_EQ(fp16.u_o, 0x1p-11);
    EXPECT_EQ(fp16.f_o, 0x1p-25);
    EXPECT_EQ(fp16.u_p, 0x1p-11);
    const Numerics fp32 = kernel_numerics(element_types(DataType::fp32, Fp8Flavour::ocp));
    EXPECT_EQ(fp32.u_p, 0.0);
    // What an exponential can be at least, whatever smaller numbers the type has.
    EXPECT_EQ(fp32.f_p, 0x1p-126);
    EXPECT_EQ(kernel_numerics(element_types(DataType::bf16, Fp8Flavour::ocp)).f_p, 0x1p-126);
    const Numerics shifted = kernel_numerics(element_types(DataType::fp8bf16, Fp8Flavour::ocp), 256.0);
    EXPECT_EQ(shifted.f_p, 0x1p-18);
    EXPECT_EQ(shifted.u_p, 0x1p-4);
}

/// One query, two keys at scores 0 and ln 3, values 4 and −8: p = 1/4, 3/4, O = −5.
class TwoKeys : public testing::Test {
  protected:
    TwoKeys() {
        args_.shape.batch = args_.shape.nhead_q = args_.shape.nhead_k = args_.shape.hdim_q =
            args_.shape.hdim_v = args_.shape.seqlen_q = 1;
        args_.shape.seqlen_k = 2;
        args_.score.scale_s = 1.0F;
        args_.score.scale_o = 2.0F;
        args_.q = {q_.data(), ElementType::fp32, 0, 0, 1, 1};
        args_.k = {k_.data(), ElementType::fp32, 0, 0, 1, 1};
        args_.v = {v_.data(), ElementType::fp32, 0, 0, 1, 1};
        kernel_ = kernel_numerics(element_types(DataType::fp16, Fp8Flavour::ocp));
    }
    ForwardRows compute(Oracle oracle) const {
        ForwardOptions options;
        options.numerics = kernel_;
        return forward(args_, std::vector<RowId>{{0, 0, 0}}, options, oracle);
    }
    std::vector<float> q_{1.0F}, k_{0.0F, 1.09861228867F}, v_{4.0F, -8.0F};
    FwdArgs args_;
    Numerics kernel_;
};

TEST_F(TwoKeys, GiveTheLimitsOfTheFormulas) {
    for (const Oracle oracle : {Oracle::row_by_row, Oracle::matrix}) {
        const ForwardRows rows = compute(oracle);
        const double s = k_[1], u32 = 0x1p-24, tolerance = 1e-7;
        const double eta = probable_growth(3, u32) * s + 4 * u32 * (s + 1);
        const double a = 0.25 * 4 + 0.75 * 8, v1 = 12, ell = 1 + 1.0 / 3.0;
        const double e =
            a * (std::expm1(2 * eta) + 2 * 0x1p-22 + 0x1p-11 + probable_growth(12, u32) + 8 * u32) +
            0x1p-25 * v1 / ell;
        const RowBound bound(rows, 0);
        EXPECT_NEAR(bound.expected(0), -10.0, 1e-6);
        EXPECT_NEAR(bound.error(0), e, tolerance * e);
        const double limit = 2 * (1 + 0x1p-11) * e + 0x1p-11 * 10 + 0x1p-25;
        EXPECT_NEAR(bound.limit(0), limit, tolerance * limit);
        const double lse = eta + probable_growth(2, u32) + 2 * 0x1p-22 + 4 * u32 * (1 + std::log(4.0));
        EXPECT_NEAR(lse_limit(rows, 0), lse, tolerance * lse);
        EXPECT_NEAR(empty_row_lse_limit(kernel_, 2, -3.0), probable_growth(2, u32) + 2 * 0x1p-22 + 16 * u32,
                    tolerance * lse);

        const auto zeta_square = [&](double score) {
            return u32 * u32 / 3 * 0.5 * score * score + u32 * u32 * (score * score + 1) + 0x1p-44 / 3;
        };
        const double inside = 0x1p-22 / 3 * (1 + 36) + 0.0625 * zeta_square(0) * 81 +
                              0.5625 * zeta_square(s) * 9 + std::pow(u32 * a, 2) +
                              std::pow(0x1p-25 / ell, 2) / 3 * 80;
        const double variance = 0x1p-22 * 100 / 3 + 4 * inside + 0x1p-50 / 3;
        EXPECT_NEAR(bound.variance(0), variance, 1e-6 * variance);
    }
}

// The roundings of a sink logit above the scores are in every weight, and in nothing that the weights are divided by.
TEST_F(TwoKeys, BelowASinkLogitHaveTheRoundingsOfItsExponents) {
    const float sink = 40.0F;
    const double s = k_[1], u32 = 0x1p-24;
    args_.score.sink_logit = &sink;
    const ForwardRows rows = compute(Oracle::row_by_row);
    const double eta = probable_growth(3, u32) * s + 4 * u32 * (s + 1) + 3 * u32 * (40 - s + s);
    const double a = (4 + 3 * 8) * std::exp(-40.0);
    const double e =
        a * (std::expm1(2 * eta) + 2 * 0x1p-22 + 0x1p-11 + probable_growth(12, u32) + 8 * u32) + 0x1p-25 * 12;
    EXPECT_NEAR(RowBound(rows, 0).error(0), e, 1e-7 * e);
    // Nothing of that is in the LSE.
    EXPECT_LT(lse_limit(rows, 0), eta - 3 * u32 * 40 + probable_growth(2, u32) + 3 * 0x1p-22 + 4 * u32 * 41);
}

TEST_F(TwoKeys, NormalisedCastsKeepTheWholeFloor) {
    kernel_.u_p = 0.0;
    kernel_.f_p = 1.0;
    const double divided = RowBound(compute(Oracle::matrix), 0).error(0);
    kernel_.normalised_p = true;
    const ForwardRows normalised = compute(Oracle::matrix);
    EXPECT_NEAR(RowBound(normalised, 0).error(0) - divided, 12.0 - 12.0 / (4.0 / 3.0), 1e-5);
}

TEST_F(TwoKeys, WithoutWeightHaveAFiniteLimitWhateverTheScores) {
    v_ = {0.0F, 0.0F};
    kernel_.u_a = 0.5;
    const ForwardRows rows = compute(Oracle::matrix);
    ASSERT_GT(rows.eta(0), 1e300);
    EXPECT_EQ(RowBound(rows, 0).error(0), 0.0);
}

/// One query behind 4000 keys at scores 0, in which ALiBi is all there is.
class FarQuery : public TwoKeys {
  protected:
    FarQuery() {
        args_.shape.seqlen_k = 4000;
        k_.assign(4000, 0.0F);
        v_.assign(4000, 1.0F);
        args_.k.data = k_.data();
        args_.v.data = v_.data();
        args_.score.bias_type = BiasType::alibi;
        args_.score.alibi_slopes = &slope_;
    }
    /// η of B.2 without the part of every key, in units of 6u32.
    double position_error(float slope, const MaskArgs& mask, Oracle oracle) {
        slope_ = slope;
        args_.mask = mask;
        return (compute(oracle).eta(0) - 4 * 0x1p-24) / (6 * 0x1p-24);
    }
    float slope_ = 0.0F;
};

TEST_F(FarQuery, ErrsAsFarAsKeysMatter) {
    const MaskArgs causal{MaskType::bottom_right, -1, 0}, window{MaskType::bottom_right, -1, 5}, none;
    for (const Oracle oracle : {Oracle::row_by_row, Oracle::matrix}) {
        for (const float slope : {0.5F, 0.25F}) {
            EXPECT_NEAR(position_error(slope, causal, oracle), 40.0, 1e-6);
            EXPECT_NEAR(position_error(slope, window, oracle), 40.0, 1e-6);
            EXPECT_NEAR(position_error(slope, none, oracle), 40.0, 1e-6);
            // The largest is at the other end then.
            EXPECT_NEAR(position_error(-slope, causal, oracle), 40.0, 1e-6);
            EXPECT_NEAR(position_error(-slope, window, oracle), 40.0, 1e-6);
            EXPECT_NEAR(position_error(-slope, none, oracle), 40.0, 1e-6);
        }
        EXPECT_NEAR(position_error(-0.001F, causal, oracle), 3.999, 1e-6);
    }
}

TEST(CodeRule, EnclosesTheRoundingsOfEverythingWithinTheError) {
    const auto reachable = [](double got, double exact, double error) {
        return code_reachable(ElementType::fp8_ocp, got, exact, error);
    };
    // Around 10 the codes are 9, 10, 11; around 16 they are 15, 16, 18.
    EXPECT_TRUE(reachable(10.0, 10.2, 0.1));
    EXPECT_FALSE(reachable(11.0, 10.2, 0.1));
    EXPECT_FALSE(reachable(9.0, 10.2, 0.1));
    EXPECT_TRUE(reachable(11.0, 10.4, 0.11));
    EXPECT_TRUE(reachable(15.0, 16.0, 0.6));
    EXPECT_FALSE(reachable(18.0, 16.0, 0.6));
    EXPECT_FALSE(reachable(std::numeric_limits<double>::quiet_NaN(), 10.0, 5.0));
    // A tie goes to the even code.
    EXPECT_TRUE(reachable(10.0, 10.5, 0.0));
    EXPECT_FALSE(reachable(11.0, 10.5, 0.0));
    // Beyond the largest value everything is that value.
    EXPECT_TRUE(reachable(448.0, 1000.0, 1.0));
    EXPECT_FALSE(reachable(416.0, 1000.0, 1.0));
    // Towards zero the codes lie closer: 0.125 is 24 codes from 1, though the error is 7 steps of 1.
    EXPECT_TRUE(reachable(0.125, 1.0, 0.875));
}

TEST(LowPrecision, StaysInsideTheElementLimitAndTruncationIsSeen) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const RandomProblem problem(seed);
        if (problem.types().p != problem.types().o) continue;
        const std::vector<RowId> rows = all_rows(problem.args());
        ForwardOptions options;
        options.numerics = kernel_numerics(problem.types());
        const ForwardRows exact = forward(problem.args(), rows, options);
        const Table low = forward_low_precision(problem.args(), rows, problem.types());
        const double largest = largest_finite(problem.types().o);
        for (std::int64_t r = 0; r < low.rows(); ++r) {
            const RowBound bound(exact, r);
            for (std::int64_t c = 0; c < low.cols(); ++c)
                ASSERT_LE(std::abs(low(r, c) - std::clamp(bound.expected(c), -largest, largest)),
                          bound.limit(c))
                    << problem.text();
        }
    }
}

TEST(Disagreement, IsSmallOnlyForEqualResults) {
    const RandomProblem problem(2);
    const std::vector<RowId> rows = all_rows(problem.args());
    const ForwardRows x = forward(problem.args(), rows);
    ASSERT_FALSE(x.o.values().empty());
    EXPECT_EQ(oracle_disagreement(x, x), 0.0);
    ForwardRows y = x;
    y.lse(0) += 1e-9;
    EXPECT_GT(oracle_disagreement(x, y), 1.0);
    y = x;
    y.o(0, 0) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_GT(oracle_disagreement(x, y), 1.0);
    y = x;
    y.visible_keys(0) += 1;
    EXPECT_GT(oracle_disagreement(x, y), 1.0);
    y = x;
    y.rows.pop_back();
    EXPECT_GT(oracle_disagreement(x, y), 1.0);
}

} // namespace
} // namespace fmha::reference
