// The two oracles against each other (tolerances B.1).
#include "reference/bounds.hpp"
#include "reference/forward.hpp"
#include "reference/row/row_oracle.hpp"
#include "tests/reference/numbers.hpp"
#include "tests/reference/random_problem.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fmha::reference {
namespace {

using test::RandomProblem;
using test::relative_difference;
using test::Wish;

/// Companions feed bounds, so that a few digits would do; both evaluate the same sums.
void expect_equal_companions(const ForwardRows& x, const ForwardRows& y) {
    EXPECT_LT(relative_difference(x.eta.values(), y.eta.values(), 1e-30), 1e-9);
    EXPECT_LT(relative_difference(x.ell.values(), y.ell.values(), 1e-30), 1e-9);
    EXPECT_LT(relative_difference(x.max_a.values(), y.max_a.values(), 1e-30), 1e-9);
    EXPECT_LT(relative_difference(x.weighted_abs.values(), y.weighted_abs.values(), 1e-30), 1e-9);
    EXPECT_LT(relative_difference(x.abs_v.values(), y.abs_v.values(), 1e-30), 1e-9);
    EXPECT_LT(relative_difference(x.square_v.values(), y.square_v.values(), 1e-30), 1e-9);
    // The matrix oracle expands the square: where v̂ is nearly O, rounding of the terms (at most η²·A²)
    // remains.
    for (std::int64_t r = 0; r < x.o.rows(); ++r)
        for (std::int64_t c = 0; c < x.o.cols(); ++c)
            EXPECT_NEAR(x.weight_variance(r, c), y.weight_variance(r, c),
                        1e-9 * x.weight_variance(r, c) +
                            1e-13 * std::pow(x.eta(r) * x.weighted_abs(r, c), 2));
    EXPECT_EQ(x.visible_keys, y.visible_keys);
    EXPECT_EQ(x.first_visible, y.first_visible);
    EXPECT_EQ(x.last_visible, y.last_visible);
    // −∞ where a row has neither a key nor a sink.
    for (const auto largest : {&ForwardRows::score_max, &ForwardRows::row_max})
        for (std::int64_t r = 0; r < x.o.rows(); ++r) {
            const double one = (x.*largest)(r), other = (y.*largest)(r);
            EXPECT_TRUE(one == other || std::abs(one - other) < 1e-11 * (1.0 + x.max_a(r)))
                << "row " << r << ": " << one << " and " << other;
        }
    EXPECT_EQ(x.seqlen_k, y.seqlen_k);
    EXPECT_EQ(x.scores_evaluated, y.scores_evaluated);
}

void expect_agreement(const RandomProblem& problem) {
    const std::vector<RowId> rows = all_rows(problem.args());
    ForwardOptions options;
    options.numerics = kernel_numerics(problem.types());
    options.numerics.u_m = 0x1p-11;
    const ForwardRows by_row = forward(problem.args(), rows, options, Oracle::row_by_row);
    const ForwardRows matrix = forward(problem.args(), rows, options, Oracle::matrix);
    EXPECT_FALSE(test::has_nan(by_row.o.values()) || test::has_nan(by_row.lse.values()));
    EXPECT_LE(oracle_disagreement(by_row, matrix), 1.0);
    expect_equal_companions(by_row, matrix);
}

TEST(Oracles, AgreeOnRandomProblems) {
    for (std::uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
        const RandomProblem problem(seed);
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
        expect_agreement(problem);
    }
}

// A slope below zero makes far keys larger, and η is measured from 0 then (B.2).
TEST(Oracles, AgreeOnPositionBiasOfEitherSign) {
    int tried = 0;
    for (std::uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
        RandomProblem problem(seed);
        FwdArgs& args = problem.args();
        if (args.score.bias_type != BiasType::alibi) continue;
        std::vector<float> slopes;
        for (std::int64_t h = 0; h < args.shape.nhead_q; ++h) slopes.push_back(h % 2 == 0 ? -0.5F : 0.25F);
        args.score.alibi_slopes = slopes.data();
        args.score.alibi_stride = 0;
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
        expect_agreement(problem);
        ++tried;
    }
    EXPECT_GE(tried, 10);
}

TEST(Oracles, AgreeBeyondOneBlockOfKeys) {
    for (std::uint64_t seed = 1001; seed <= 1020 && !HasFailure(); ++seed) {
        const RandomProblem problem(seed, {.long_sequences = true});
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
        expect_agreement(problem);
    }
}

} // namespace
} // namespace fmha::reference
