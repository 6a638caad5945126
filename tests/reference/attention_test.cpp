// Attention over a cache: both oracles, against each other and against forward over the same keys one after another.
#include "dispatcher/types/error.hpp"
#include "reference/attention.hpp"
#include "reference/bounds.hpp"
#include "tests/reference/cache_problem.hpp"
#include "tests/reference/numbers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace fmha::reference {
namespace {

using test::CacheKind;
using test::CacheProblem;
using test::CacheWish;

std::vector<CacheWish> all_wishes() {
    return {{CacheKind::slots, false, {}},       {CacheKind::table, false, {}},
            {CacheKind::gappy_table, false, {}}, {CacheKind::page_list, false, {}},
            {CacheKind::table, true, {}},        {CacheKind::page_list, true, {}}};
}

void expect_same(const ForwardRows& x, const ForwardRows& y) {
    EXPECT_LE(oracle_disagreement(x, y), 1.0);
    EXPECT_EQ(x.seqlen_k, y.seqlen_k);
    EXPECT_EQ(x.scores_evaluated, y.scores_evaluated);
    for (const auto member : {&ForwardRows::eta, &ForwardRows::ell, &ForwardRows::max_a})
        EXPECT_LT(test::relative_difference((x.*member).values(), (y.*member).values(), 1e-30), 1e-9);
}

std::string name_of(const CacheWish& wish) {
    const char* const kind = wish.kind == CacheKind::slots         ? "Slots"
                             : wish.kind == CacheKind::table       ? "Table"
                             : wish.kind == CacheKind::gappy_table ? "GappyTable"
                                                                   : "PageList";
    return std::string(kind) + (wish.vectorized ? "Vectorized" : "");
}

class AttentionOverACache : public testing::TestWithParam<CacheWish> {};
INSTANTIATE_TEST_SUITE_P(Kinds, AttentionOverACache, testing::ValuesIn(all_wishes()),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(AttentionOverACache, IsForwardOverTheSameKeys) {
    int problems = 0;
    for (std::uint64_t seed = 1; seed <= 90 && !HasFailure(); ++seed) {
        const CacheProblem problem(seed, GetParam());
        if (!problem.possible()) continue;
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
        ++problems;
        const std::vector<RowId> rows = all_rows(problem.args());
        ASSERT_EQ(rows, all_rows(problem.contiguous()));
        const ForwardRows by_row = attention(problem.args(), rows, {}, Oracle::row_by_row);
        const ForwardRows matrix = attention(problem.args(), rows, {}, Oracle::matrix);
        EXPECT_FALSE(test::has_nan(matrix.o.values()) || test::has_nan(by_row.o.values()));
        expect_same(by_row, matrix);
        // Not a bit depends on where keys lie.
        const ForwardRows whole = forward(problem.contiguous(), rows, {}, Oracle::matrix);
        EXPECT_EQ(whole.o, matrix.o);
        EXPECT_EQ(whole.lse, matrix.lse);
        EXPECT_EQ(forward(problem.contiguous(), rows, {}, Oracle::row_by_row).o, by_row.o);
        for (std::int64_t b = 0; b < problem.args().shape.batch; ++b)
            if (entry_lengths(problem.args(), b).seqlen_k > 0) {
                EXPECT_EQ(value_of(problem.args(), b, 0, 0, 0), value_of(problem.contiguous(), b, 0, 0, 0));
            }
    }
    EXPECT_GE(problems, 15);
}

TEST_P(AttentionOverACache, OfAllSplitsTogetherIsTheWhole) {
    int problems = 0, empty = 0;
    for (std::uint64_t seed = 101; seed <= 140 && !HasFailure(); ++seed) {
        CacheProblem problem(seed, GetParam());
        if (!problem.possible()) continue;
        ++problems;
        AttentionArgs& args = problem.args();
        args.score.sink_logit = nullptr;
        const std::vector<RowId> rows = all_rows(args);
        const ForwardRows whole = attention(args, rows);
        args.num_splits = std::vector<std::int64_t>{1, 2, 3, 7, 128}[seed % 5];
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text() + " splits " +
                     std::to_string(args.num_splits));
        Table o(whole.o.rows(), whole.o.cols());
        Column<std::int64_t> keys(whole.o.rows(), 0);
        Column<double> mass(whole.o.rows(), 0.0);
        for (args.split = 0; args.split < args.num_splits; ++args.split) {
            const ForwardRows part = attention(args, rows, {}, Oracle::matrix);
            expect_same(attention(args, rows, {}, Oracle::row_by_row), part);
            for (std::int64_t r = 0; r < o.rows(); ++r) {
                keys(r) += part.visible_keys(r);
                empty += part.visible_keys(r) == 0 ? 1 : 0;
                if (!(part.lse(r) > -std::numeric_limits<double>::infinity())) continue;
                const double weight = std::exp(part.lse(r) - whole.lse(r));
                mass(r) += weight;
                for (std::int64_t c = 0; c < o.cols(); ++c) o(r, c) += weight * part.o(r, c);
            }
        }
        for (std::int64_t r = 0; r < o.rows(); ++r) {
            EXPECT_EQ(keys(r), whole.visible_keys(r));
            if (keys(r) == 0) continue;
            EXPECT_NEAR(mass(r), 1.0, 1e-11 * (1.0 + whole.max_a(r)));
            for (std::int64_t c = 0; c < o.cols(); ++c)
                EXPECT_NEAR(o(r, c), whole.o(r, c),
                            1e-11 * (1.0 + whole.max_a(r)) * whole.weighted_abs(r, c));
        }
    }
    EXPECT_GE(problems, 8);
    EXPECT_GE(empty, 100);
}

TEST(AttentionErrors, AModeOfPagesNeedsPages) {
    CacheProblem problem(3, {CacheKind::table, false, {}});
    AttentionArgs args = attention_of(problem.contiguous());
    args.quant.qscale = QScale::kv_blockscale;
    for (const Oracle oracle : {Oracle::matrix, Oracle::row_by_row})
        EXPECT_THROW(attention(args, all_rows(args), {}, oracle), ProblemError);
}

/// Pages with scales of their own: the values of keys times those of their page.
TEST(Attention, TakesTheDescalesOfPagesAndOfTokens) {
    int problems = 0;
    for (std::uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
        CacheProblem problem(seed, {CacheKind::table, seed % 2 == 0, {}});
        if (!problem.possible() || problem.args().quant.qscale != QScale::no_scale) continue;
        ++problems;
        AttentionArgs& args = problem.args();
        const std::int64_t pages = args.place.page_count, heads = args.shape.nhead_k,
                           size = args.place.page_size;
        std::vector<float> q(4096, 1.5F), k(static_cast<std::size_t>(pages * heads * size)), v(k.size());
        for (std::size_t n = 0; n < k.size(); ++n) {
            k[n] = 0.25F * static_cast<float>(n % 7 + 1);
            v[n] = 0.5F * static_cast<float>(n % 5 + 1);
        }
        args.quant.q_descale = {q.data(), ElementType::fp32, 0, 0, 0, 0};
        args.quant.k_descale = {k.data(), ElementType::fp32, heads * size, size, 1, 0};
        args.quant.v_descale = {v.data(), ElementType::fp32, heads * size, size, 1, 0};
        const std::vector<RowId> rows = all_rows(args);
        for (const QScale mode : {QScale::kv_blockscale, QScale::per_token_head}) {
            args.quant.qscale = mode;
            const ForwardRows matrix = attention(args, rows);
            expect_same(attention(args, rows, {}, Oracle::row_by_row), matrix);
            if (rows.empty() || std::ranges::max(matrix.visible_keys.values()) < 2) continue;
            args.quant.qscale = QScale::no_scale;
            EXPECT_NE(attention(args, rows).o, matrix.o);
        }
    }
    EXPECT_GE(problems, 10);
}

} // namespace
} // namespace fmha::reference
