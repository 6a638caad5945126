// The rows that are computed, their cost, and the facts that they may not depend on.
#include "dispatcher/types/error.hpp"
#include "reference/attention.hpp"
#include "reference/bounds.hpp"
#include "reference/forward.hpp"
#include "reference/visibility.hpp"
#include "tests/reference/numbers.hpp"
#include "tests/reference/random_problem.hpp"
#include "tests/support/dense_problem.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

namespace fmha::reference {
namespace {

using test::RandomProblem;

class BothOracles : public testing::TestWithParam<Oracle> {};

INSTANTIATE_TEST_SUITE_P(Oracle, BothOracles, testing::Values(Oracle::row_by_row, Oracle::matrix),
                         [](const auto& test) { return test.param == Oracle::matrix ? "matrix" : "row"; });

TEST_P(BothOracles, SampledRowsEqualAllRowsInAnyOrder) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const RandomProblem problem(seed, {.long_sequences = seed <= 3});
        const std::vector<RowId> rows = all_rows(problem.args());
        const ForwardRows all = forward(problem.args(), rows, {}, GetParam());
        std::vector<RowId> sample = sampled_rows(problem.args(), seed, 8);
        std::ranges::shuffle(sample, std::mt19937_64{seed});
        const ForwardRows some = forward(problem.args(), sample, {}, GetParam());
        ASSERT_EQ(some.rows, sample);
        for (std::size_t n = 0; n < sample.size(); ++n) {
            const auto at = std::ranges::find(rows, sample[n]);
            ASSERT_NE(at, rows.end());
            const auto r = static_cast<std::int64_t>(at - rows.begin()), s = static_cast<std::int64_t>(n);
            // Eigen may sum a product of other extents in another order.
            EXPECT_LT(test::distance(some.o.row(s), all.o.row(r)), 1e-12 * (1.0 + test::norm(all.o.row(r))))
                << problem.text();
            EXPECT_TRUE(some.lse(s) == all.lse(r) || std::abs(some.lse(s) - all.lse(r)) < 1e-12);
            EXPECT_EQ(some.visible_keys(s), all.visible_keys(r));
            EXPECT_EQ(some.seqlen_k(s), all.seqlen_k(r));
        }
    }
}

/// Heads of 8 channels, in fp32.
struct LongHead : fmha::test::DenseProblem<FwdArgs, float> {
    LongHead(std::int64_t length, std::int64_t heads, const MaskArgs& mask)
        : DenseProblem({1, heads, heads, length, length, 8, 8}, ElementType::fp32, fmha::test::same_value) {
        args.mask = mask;
    }
};

TEST_P(BothOracles, CostIsProportionalToTheSample) {
    const LongHead unmasked(512, 2, {});
    const std::vector<RowId> few{{0, 0, 3}, {0, 0, 400}, {0, 1, 511}};
    EXPECT_EQ(forward(unmasked.args, few, {}, GetParam()).scores_evaluated, 3 * 512);
    EXPECT_EQ(forward(unmasked.args, all_rows(unmasked.args), {}, GetParam()).scores_evaluated,
              2 * 512 * 512);
    EXPECT_EQ(forward(unmasked.args, {}, {}, GetParam()).scores_evaluated, 0);

    const LongHead window(512, 1, {MaskType::top_left, 9, 0, 0});
    EXPECT_EQ(forward(window.args, std::vector<RowId>{{0, 0, 400}}, {}, GetParam()).scores_evaluated, 10);
}

TEST(LongSequences, AgreeOnSampledRows) {
    const LongHead head(16384, 1, {MaskType::bottom_right, 5000, 0, 4});
    const std::vector<RowId> rows = sampled_rows(head.args, 5, 16);
    EXPECT_LE(oracle_disagreement(forward(head.args, rows, {}, Oracle::row_by_row), forward(head.args, rows)),
              1.0);
}

TEST_P(BothOracles, ResultsDoNotDependOnThreads) {
    const RandomProblem problem(12, {.long_sequences = true});
    const std::vector<RowId> rows = all_rows(problem.args());
    ForwardOptions one, three;
    one.threads = 1;
    three.threads = 3;
    const ForwardRows x = forward(problem.args(), rows, one, GetParam());
    const ForwardRows y = forward(problem.args(), rows, three, GetParam());
    EXPECT_LE(oracle_disagreement(x, y), 1.0);
}

TEST_P(BothOracles, OutputsAreNotWanted) {
    const LongHead head(64, 1, {});
    ASSERT_FALSE(head.args.o.present() || head.args.lse.present());
    EXPECT_EQ(forward(head.args, all_rows(head.args), ForwardOptions{false, {}, 1}, GetParam()).o.rows(), 64);
}

// Rows are shared among threads in tasks of 32 at least: the last one may have one row alone.
TEST_P(BothOracles, TheRowBehindAWholeTaskIsComputed) {
    const LongHead head(33, 1, {});
    const std::vector<RowId> rows = all_rows(head.args);
    const ForwardRows alone = forward(head.args, rows, ForwardOptions{false, {}, 1}, GetParam());
    const ForwardRows shared = forward(head.args, rows, ForwardOptions{false, {}, 2}, GetParam());
    EXPECT_LT(test::distance(shared.o.values(), alone.o.values()), 1e-12 * test::norm(alone.o.values()));
    EXPECT_NE(test::norm(shared.o.row(32)), 0.0);
}

TEST(LowPrecision, TheRowBehindAWholeTaskIsComputed) {
    const LongHead head(33, 1, {});
    const std::vector<RowId> rows = all_rows(head.args);
    const Table alone = forward_low_precision(head.args, rows, ElementTypes{}, 1);
    EXPECT_EQ(forward_low_precision(head.args, rows, ElementTypes{}, 2), alone);
    EXPECT_NE(test::norm(alone.row(32)), 0.0);
}

TEST_P(BothOracles, ARowOutsideItsEntryIsRefused) {
    const LongHead head(8, 1, {});
    for (const std::int64_t i : {-1, 8}) {
        const std::vector<RowId> outside{{0, 0, i}};
        EXPECT_THAT([&] { forward(head.args, outside, {}, GetParam()); },
                    testing::ThrowsMessage<Error>(testing::HasSubstr("row " + std::to_string(i) +
                                                                     " of entry 0 was asked for; it has 8")));
    }
}

TEST_P(BothOracles, ScaleModesOfOtherFamiliesAreRefused) {
    LongHead head(8, 1, {});
    head.args.quant.qscale = QScale::kv_blockscale;
    EXPECT_THROW(forward(head.args, all_rows(head.args), {}, GetParam()), ProblemError);
}

TEST_P(BothOracles, BothLengthArraysOfASideAreRefused) {
    LongHead head(8, 1, {});
    const std::vector<RowId> rows = all_rows(head.args);
    const std::vector<std::int32_t> length{4}, cumulative{0, 4};
    head.args.lengths.seqlen_k = length.data();
    head.args.lengths.cu_seqlen_k = cumulative.data();
    EXPECT_THROW(forward(head.args, rows, {}, GetParam()), ProblemError);
}

TEST(SampledRows, HasTheFixedOnesAndEnoughRandomOnes) {
    // Bottom-right causal with more queries than keys: rows below 700 see nothing.
    LongHead head(1000, 2, {MaskType::bottom_right, -1, 0, 0});
    head.args.shape.seqlen_k = 300;
    const std::vector<RowId> rows = sampled_rows(head.args, 1);
    EXPECT_TRUE(std::ranges::is_sorted(rows));
    const std::set<RowId> distinct(rows.begin(), rows.end());
    EXPECT_EQ(distinct.size(), rows.size());
    for (const std::int64_t h : {0, 1}) {
        for (const std::int64_t i : {0, 1, 31, 32, 63, 64, 127, 128, 500, 998, 999, 700})
            EXPECT_TRUE(distinct.contains({0, h, i})) << i;
        const auto of_head = std::ranges::count_if(rows, [h](const RowId& row) { return row.h == h; });
        EXPECT_GE(of_head, 64);
    }
    EXPECT_EQ(sampled_rows(head.args, 1), rows);
    EXPECT_NE(sampled_rows(head.args, 2), rows);
}

/// First and last key that the oracle found, and the mask's predicate, against the formulas.
TEST(Visibility, IsThatOfTheOracle) {
    int rows_of_one_key = 0, empty_rows = 0, hidden_by_bias = 0, sink_prefixes = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const RandomProblem problem(seed, {.elementwise = seed % 3 == 0, .mask = seed % 2 == 0});
        const FwdArgs& args = problem.args();
        const std::vector<RowId> rows = all_rows(args);
        const ForwardRows oracle =
            forward(args, rows, ForwardOptions{.companions = false, .numerics = {}, .threads = 1},
                    Oracle::row_by_row);
        for (std::size_t r = 0; r < rows.size(); ++r) {
            const auto at = static_cast<std::int64_t>(r);
            const KeyRanges keys = key_ranges(attention_of(args), rows[r]);
            ASSERT_TRUE(0 == keys.sink_begin && 0 <= keys.sink_end && keys.sink_end <= keys.first &&
                        keys.first <= keys.end);
            for (std::int64_t j = 0; j < oracle.seqlen_k(at) || j < keys.end; ++j)
                ASSERT_EQ(keys.contain(j), key_visible(args, rows[r].b, rows[r].i, j))
                    << problem.text() << " row " << rows[r].i << " key " << j;
            const EndKeys ends = end_keys(attention_of(args), rows[r]);
            ASSERT_EQ(ends.first, oracle.first_visible(at)) << problem.text() << " row " << rows[r].i;
            ASSERT_EQ(ends.last, oracle.last_visible(at)) << problem.text() << " row " << rows[r].i;
            ASSERT_EQ(ends.single(), oracle.visible_keys(at) == 1);
            ASSERT_EQ(ends.none(), oracle.visible_keys(at) == 0);
            rows_of_one_key += ends.single() ? 1 : 0;
            empty_rows += ends.none() ? 1 : 0;
            hidden_by_bias += oracle.visible_keys(at) < keys.count() ? 1 : 0;
            sink_prefixes += keys.sink_end > 0 && keys.sink_end < keys.first ? 1 : 0;
        }
    }
    EXPECT_GT(rows_of_one_key, 0);
    EXPECT_GT(empty_rows, 0);
    EXPECT_GT(hidden_by_bias, 0);
    EXPECT_GT(sink_prefixes, 0);
}

TEST(Visibility, OfASplitIsWhatTheOracleSeesThere) {
    int rows_of_one_key = 0, sinks_apart = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const RandomProblem problem(seed, {.elementwise = seed % 3 == 0, .mask = seed % 4 != 0});
        AttentionArgs args = attention_of(problem.args());
        if (seed % 4 == 1) args.mask = {MaskType::bottom_right, 3, 0, 20}; // sink tokens of several splits
        const std::vector<RowId> rows = all_rows(args);
        args.num_splits = 2 + static_cast<std::int64_t>(seed % 5);
        for (args.split = 0; args.split < args.num_splits; ++args.split) {
            const ForwardRows oracle =
                attention(args, rows, ForwardOptions{.companions = false, .numerics = {}, .threads = 1},
                          Oracle::row_by_row);
            for (std::size_t r = 0; r < rows.size(); ++r) {
                const auto at = static_cast<std::int64_t>(r);
                const EndKeys ends = end_keys(args, rows[r]);
                ASSERT_EQ(ends.first, oracle.first_visible(at)) << problem.text() << " split " << args.split;
                ASSERT_EQ(ends.last, oracle.last_visible(at)) << problem.text() << " split " << args.split;
                ASSERT_EQ(ends.single(), oracle.visible_keys(at) == 1);
                const KeyRanges keys = key_ranges(args, rows[r]);
                ASSERT_LE(oracle.visible_keys(at), keys.count());
                rows_of_one_key += ends.single() ? 1 : 0;
                sinks_apart += keys.sink_begin > 0 && keys.sinks() > 0 ? 1 : 0;
            }
        }
    }
    EXPECT_GT(rows_of_one_key, 0);
    EXPECT_GT(sinks_apart, 0);
}

TEST(AllRows, LeavesOutEntriesThatMinSeqlenQSkips) {
    LongHead head(12, 1, {});
    const std::vector<std::int32_t> starts{0, 4, 4, 12};
    head.args.shape.mode = Mode::group;
    head.args.shape.batch = 3;
    head.args.lengths.seqstart_q = head.args.lengths.seqstart_k = starts.data();
    EXPECT_EQ(all_rows(head.args).size(), 12U);
    head.args.shape.min_seqlen_q = 4;
    const std::vector<RowId> rows = all_rows(head.args);
    ASSERT_EQ(rows.size(), 8U);
    EXPECT_EQ(rows.front(), (RowId{2, 0, 0}));
    EXPECT_EQ(entry_lengths(head.args, 0).seqlen_q, 0);
}

} // namespace
} // namespace fmha::reference
