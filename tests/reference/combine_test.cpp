// The combination of partial results (S-4): both forms against each other, known answers, and the limits of B.7.
#include "dispatcher/types/error.hpp"
#include "reference/bounds.hpp"
#include "reference/combine.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/reference/random_partials.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace fmha::reference {
namespace {

using test::PartialsWish;
using test::RandomPartials;

constexpr float never = -std::numeric_limits<float>::infinity();
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
constexpr double u32 = 0x1p-24;

void expect_near(std::span<const double> x, std::span<const double> y) {
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-9 * (std::abs(x[i]) + 1e-30)) << i;
}

TEST(Combine, BothFormsAgreeOnRandomPartialResults) {
    for (std::uint64_t seed = 1; seed <= 600 && !HasFailure(); ++seed) {
        const RandomPartials problem(seed);
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
        const std::vector<RowId> rows = all_rows(problem.args());
        const CombinedRows by_row = combine(problem.args(), rows, {}, Oracle::row_by_row);
        const CombinedRows matrix = combine(problem.args(), rows, {}, Oracle::matrix);
        EXPECT_LE(oracle_disagreement(by_row, matrix), 1.0);
        EXPECT_LE(oracle_disagreement(matrix, by_row), 1.0);
        expect_near(by_row.ell, matrix.ell);
        expect_near(by_row.largest_lse, matrix.largest_lse);
        expect_near(by_row.weighted_abs.values(), matrix.weighted_abs.values());
        expect_near(by_row.abs_o.values(), matrix.abs_o.values());
        // Distances of 1500 cancel to a few, so that their last digits differ.
        for (std::size_t r = 0; r < rows.size(); ++r)
            EXPECT_NEAR(by_row.mean_distance[r], matrix.mean_distance[r],
                        1e-9 * (1.0 + by_row.largest_lse[r]));
        for (std::size_t i = 0; i < by_row.o.values().size(); ++i) {
            EXPECT_NEAR(by_row.weighted_distance.values()[i], matrix.weighted_distance.values()[i], 1e-9);
            EXPECT_NEAR(by_row.weight_variance.values()[i], matrix.weight_variance.values()[i],
                        1e-9 * by_row.weight_variance.values()[i] + 1e-30);
        }
    }
}

/// Rows of one head whose partial results are written down.
class WrittenRows {
  public:
    /// `lse[s][i]` and `o[s][i][c]`.
    WrittenRows(const std::vector<std::vector<float>>& lse,
                const std::vector<std::vector<std::vector<float>>>& o, float sink = never)
        : sink_{sink} {
        const std::size_t rows = lse[0].size(), cols = o[0][0].size();
        args_.shape.batch = args_.shape.nhead_q = args_.shape.nhead_k = 1;
        args_.shape.seqlen_q = static_cast<std::int64_t>(rows);
        args_.shape.hdim_v = static_cast<std::int64_t>(cols);
        for (std::size_t s = 0; s < lse.size(); ++s)
            for (std::size_t i = 0; i < rows; ++i) {
                lse_.push_back(lse[s][i]);
                o_.insert(o_.end(), o[s][i].begin(), o[s][i].end());
            }
        const auto hdim = static_cast<std::int64_t>(cols), length = static_cast<std::int64_t>(rows);
        args_.partials.num_splits = static_cast<std::int64_t>(lse.size());
        args_.partials.lse_acc = {lse_.data(), ElementType::fp32, 0, length, 1, 1};
        args_.partials.o_acc = {o_.data(), ElementType::fp32, 0, length * hdim, hdim, 1};
        args_.score.sink_logit = &sink_;
    }
    WrittenRows(const WrittenRows&) = delete;
    WrittenRows& operator=(const WrittenRows&) = delete;
    ~WrittenRows() = default;

    CombinedRows combined(Oracle oracle, const ForwardOptions& options = {}) const {
        return combine(args_, all_rows(args_), options, oracle);
    }
    SplitKvArgs& args() { return args_; }

  private:
    std::vector<float> lse_, o_;
    float sink_;
    SplitKvArgs args_;
};

class KnownAnswers : public testing::TestWithParam<Oracle> {};
INSTANTIATE_TEST_SUITE_P(Forms, KnownAnswers, testing::Values(Oracle::row_by_row, Oracle::matrix));

TEST_P(KnownAnswers, OneSplitIsReturnedAsItIs) {
    const CombinedRows rows =
        WrittenRows({{2.5F, -700.0F}}, {{{1.5F, -3.0F}, {0.25F, 8.0F}}}).combined(GetParam());
    EXPECT_THAT(rows.o.values(), testing::ElementsAre(1.5, -3.0, 0.25, 8.0));
    EXPECT_EQ(rows.lse, (std::vector<double>{2.5, -700.0}));
}

TEST_P(KnownAnswers, EqualSplitsAreAveraged) {
    const CombinedRows rows =
        WrittenRows({{1000.0F}, {1000.0F}, {1000.0F}, {1000.0F}}, {{{1.0F}}, {{2.0F}}, {{4.0F}}, {{-8.0F}}})
            .combined(GetParam());
    EXPECT_NEAR(rows.o(0, 0), -0.25, 1e-15);
    EXPECT_NEAR(rows.lse[0], 1000.0 + std::log(4.0), 1e-12);
}

/// Semantics 21.1, plain: row 0 has scores (1, 0, −1, 2) and values (1, 2, 4, −8). Splits {1, 0} and {−1, 2}.
TEST_P(KnownAnswers, TheWorkedExampleInTwoSplits) {
    const double first = std::log(std::exp(1.0) + 1.0), second = std::log(std::exp(-1.0) + std::exp(2.0));
    const double o1 = (std::exp(1.0) + 2.0) / std::exp(first);
    const double o2 = (4.0 * std::exp(-1.0) - 8.0 * std::exp(2.0)) / std::exp(second);
    const std::vector<std::vector<float>> lse{{static_cast<float>(first)}, {static_cast<float>(second)}};
    const std::vector<std::vector<std::vector<float>>> o{{{static_cast<float>(o1)}},
                                                         {{static_cast<float>(o2)}}};
    const CombinedRows plain = WrittenRows(lse, o).combined(GetParam());
    EXPECT_NEAR(plain.o(0, 0), -4.61190821, 2e-6);
    EXPECT_NEAR(plain.lse[0], 2.44018970, 5e-7);
    const CombinedRows with_sink = WrittenRows(lse, o, 1.0F).combined(GetParam());
    EXPECT_NEAR(with_sink.o(0, 0), -3.72865412, 2e-6);
    EXPECT_NEAR(with_sink.lse[0], 2.65278406, 5e-7);
}

TEST_P(KnownAnswers, SplitsWithoutKeysDoNotCount) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const CombinedRows rows = WrittenRows({{never, never}, {3.0F, never}, {never, never}},
                                          {{{nan}, {nan}}, {{7.0F}, {nan}}, {{nan}, {nan}}})
                                  .combined(GetParam());
    EXPECT_THAT(rows.o.values(), testing::ElementsAre(7.0, 0.0));
    EXPECT_EQ(rows.lse, (std::vector<double>{3.0, minus_infinity}));
    EXPECT_EQ(rows.splits_taken, (std::vector<std::int64_t>{1, 0}));
}

TEST_P(KnownAnswers, ARowWithoutKeysReturnsItsSink) {
    const CombinedRows rows =
        WrittenRows({{never}, {never}}, {{{5.0F}}, {{6.0F}}}, 0.5F).combined(GetParam());
    EXPECT_EQ(rows.o(0, 0), 0.0);
    EXPECT_EQ(rows.lse[0], 0.5);
}

TEST_P(KnownAnswers, TheSinkCountsOnce) {
    // Two splits and the sink at ln 1, so that each has a third.
    const CombinedRows rows = WrittenRows({{0.0F}, {0.0F}}, {{{3.0F}}, {{9.0F}}}, 0.0F).combined(GetParam());
    EXPECT_NEAR(rows.o(0, 0), 4.0, 1e-15);
    EXPECT_NEAR(rows.lse[0], std::log(3.0), 1e-15);
}

TEST_P(KnownAnswers, AFarSplitVanishes) {
    const CombinedRows rows = WrittenRows({{-1e30F}, {1e30F}}, {{{1e30F}}, {{2.0F}}}).combined(GetParam());
    EXPECT_EQ(rows.o(0, 0), 2.0);
    EXPECT_EQ(rows.lse[0], double{1e30F});
}

/// w = (1/4, 3/4), o = (4, −8): O = −5.
TEST_P(KnownAnswers, LimitsAreThoseOfTheFormulas) {
    WrittenRows problem({{0.0F}, {static_cast<float>(std::log(3.0))}}, {{{4.0F}}, {{-8.0F}}});
    problem.args().score.scale_o = 2.0F;
    ForwardOptions options;
    options.numerics.u_o = 0x1p-11;
    options.numerics.f_o = 0x1p-25;
    options.numerics.f_p = 0x1p-20;
    const CombinedRows rows = problem.combined(GetParam(), options);
    const double d = std::log(3.0), eps = 0x1p-22, growth = probable_growth(2, u32);
    const double a = 1.0 + 6.0, mean = 0.25 * d;
    const double e =
        a * (growth + 4 * u32 + 2 * eps) + 4 * u32 * (0.25 * d * 4 + a * mean) + 0x1p-20 * 12 / (4.0 / 3.0);
    const CombineBound bound(rows, 0);
    EXPECT_NEAR(bound.expected(0), -10.0, 1e-6);
    EXPECT_NEAR(bound.error(0), e, 1e-6 * e);
    const double limit = 2 * (1 + 0x1p-11) * e + 0x1p-11 * 10 + 0x1p-25;
    EXPECT_NEAR(bound.limit(0), limit, 1e-6 * limit);
    const double inside = 0.0625 * (u32 * u32 * (d * d + 1) + eps * eps / 3) * 81 +
                          0.5625 * (u32 * u32 + eps * eps / 3) * 9 + std::pow(u32 * a, 2);
    const double variance = 0x1p-22 * 100 / 3 + 4 * inside + 0x1p-50 / 3;
    EXPECT_NEAR(bound.variance(0), variance, 1e-6 * variance);
    const double lse = growth + 2 * eps + 4 * u32 * (1 + std::log(4.0) + mean);
    EXPECT_NEAR(combined_lse_limit(rows, 0), lse, 1e-6 * lse);
}

/// S-4 in fp32, one operation after another, as a kernel may do it.
struct InSinglePrecision {
    float lse = never;
    std::vector<float> o;

    InSinglePrecision(const SplitKvArgs& args, const RowId& row, std::int64_t first) {
        const Partials& p = args.partials;
        const auto at = [&](const TensorView& view, std::int64_t s, std::int64_t c) {
            return static_cast<const float*>(
                view.data)[view.offset(row.b, row.h * p.num_splits + s, first + row.i, c)];
        };
        const float sink = args.score.sink_logit == nullptr ? never : args.score.sink_logit[row.h];
        float top = sink, sum = 0.0F;
        for (std::int64_t s = 0; s < p.num_splits; ++s) top = std::max(top, at(p.lse_acc, s, 0));
        o.assign(static_cast<std::size_t>(args.shape.hdim_v), 0.0F);
        if (top == never) return;
        for (std::int64_t s = 0; s < p.num_splits; ++s) {
            const float own = at(p.lse_acc, s, 0), weight = std::exp(own - top);
            sum += weight;
            for (std::int64_t c = 0; c < args.shape.hdim_v && own > never; ++c)
                o[static_cast<std::size_t>(c)] += weight * at(p.o_acc, s, c);
        }
        sum += std::exp(sink - top);
        lse = top + std::log(sum);
        for (float& x : o) x *= args.score.scale_o / sum;
    }
};

TEST(CombineBounds, HoldForPlainSinglePrecisionAndAreNotWide) {
    double worst = 0.0, worst_lse = 0.0;
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        const RandomPartials problem(seed);
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
        const SplitKvArgs& args = problem.args();
        ForwardOptions options;
        options.numerics.f_p = 0x1p-126; // smaller weights are not exact
        const CombinedRows rows = combine(args, all_rows(args), options);
        for (std::size_t r = 0; r < rows.rows.size(); ++r) {
            const RowId& row = rows.rows[r];
            const std::int64_t first = args.shape.mode == Mode::group ? args.lengths.seqstart_q[row.b] : 0;
            const InSinglePrecision plain(args, row, first);
            const auto at = static_cast<std::int64_t>(r);
            const CombineBound bound(rows, at);
            if (rows.lse[r] == minus_infinity) {
                EXPECT_EQ(plain.lse, never);
                continue;
            }
            worst_lse = std::max(worst_lse, std::abs(plain.lse - rows.lse[r]) / combined_lse_limit(rows, at));
            for (std::int64_t c = 0; c < args.shape.hdim_v; ++c)
                worst = std::max(worst,
                                 std::abs(double{plain.o[static_cast<std::size_t>(c)]} - bound.expected(c)) /
                                     bound.limit(c));
        }
    }
    RecordProperty("worst", std::to_string(worst) + " " + std::to_string(worst_lse));
    EXPECT_LT(worst, 1.0);
    EXPECT_GT(worst, 0.02);
    EXPECT_LT(worst_lse, 1.0);
    EXPECT_GT(worst_lse, 0.02);
}

TEST(Combine, SamplesEqualTheWhole) {
    const RandomPartials problem(11, {.group = true});
    const std::vector<RowId> rows = all_rows(problem.args());
    const CombinedRows whole = combine(problem.args(), rows);
    const std::vector<RowId> sample{rows.back(), rows.front()};
    for (const Oracle oracle : {Oracle::row_by_row, Oracle::matrix}) {
        const CombinedRows some = combine(problem.args(), sample, {}, oracle);
        EXPECT_EQ(some.rows, sample);
        EXPECT_NEAR(some.lse[0], whole.lse.back(), 1e-12 * (1.0 + whole.largest_lse.back()));
        EXPECT_NEAR(some.lse[1], whole.lse.front(), 1e-12 * (1.0 + whole.largest_lse.front()));
    }
}

TEST(Combine, RefusesWhatItCannotCombine) {
    RandomPartials problem(3);
    const std::vector<RowId> outside{{0, 0, 1000}};
    EXPECT_THROW(combine(problem.args(), outside), Error);
    const std::vector<RowId> rows = all_rows(problem.args());
    SplitKvArgs args = problem.args();
    args.partials.num_splits = 129;
    EXPECT_THROW(combine(args, rows), ProblemError);
    args.partials.num_splits = 0;
    EXPECT_THROW(combine(args, rows), ProblemError);
    args = problem.args();
    args.partials.o_acc.data = nullptr;
    EXPECT_THROW(combine(args, rows), Error);
    args = problem.args();
    args.partials.lse_acc.type = ElementType::fp16;
    EXPECT_THROW(combine(args, rows), Error);
}

TEST(CombineDisagreement, IsSmallOnlyForEqualResults) {
    const RandomPartials problem(2, {.several_heads = true});
    const CombinedRows x = combine(problem.args(), all_rows(problem.args()));
    EXPECT_EQ(oracle_disagreement(x, x), 0.0);
    CombinedRows y = x;
    y.lse[0] += 1e-9 * (1.0 + x.largest_lse[0]);
    EXPECT_GT(oracle_disagreement(x, y), 1.0);
    y = x;
    y.o(0, 0) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_GT(oracle_disagreement(x, y), 1.0);
    y = x;
    y.splits_taken[0] += 1;
    EXPECT_GT(oracle_disagreement(x, y), 1.0);
    y = x;
    y.rows.pop_back();
    EXPECT_GT(oracle_disagreement(x, y), 1.0);
}

} // namespace
} // namespace fmha::reference
