// Gates that need no oracle judge every row of a sampled case, and every element: mistakes in rows outside the sample, and
// in elements that other gates let through.

#include "harness/cases/case_problem.hpp"
#include "harness/data/storage.hpp"
#include "reference/bounds.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/harness/gate_support.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace fmha::harness::test {
namespace {

using testing::HasSubstr;

Case sampled_case() {
    Case c = small_case();
    c.batch = c.nhead_q = c.nhead_k = 1;
    c.seqlen_q = {400};
    c.seqlen_k = {400};
    c.sampled_rows = true;
    return c;
}

/// A row of entry 0, head 0 that the oracles do not compute.
std::int64_t row_outside_the_sample(const FwdArgs& args) {
    const auto sample = reference::sampled_rows(args, 1);
    for (std::int64_t i = args.shape.seqlen_q - 1; i >= 0; --i)
        if (!std::ranges::binary_search(sample, reference::RowId{0, 0, i})) return i;
    ADD_FAILURE() << "every row is in the sample";
    return 0;
}

void flip_lowest_bit_of_o(const FwdArgs& args, std::int64_t row, std::int64_t column) {
    const std::int64_t at = args.o.offset(0, 0, row, column);
    store_code(args.o.data, args.o.type, at, load_code(args.o.data, args.o.type, at) ^ 1U);
}

void expect_red_and_right_green(const Case& c, const std::string& gate,
                                const std::function<void(const FwdArgs&)>& spoil) {
    EXPECT_TRUE(verdict(run_right(c), gate).passed);
    const CaseResult result = run_spoiled(c, spoil);
    EXPECT_EQ(result.outcome, Outcome::failed);
    EXPECT_FALSE(verdict(result, gate).passed);
    EXPECT_THAT(result.pattern, HasSubstr("1 of 400 checked rows"));
}

TEST(AllRows, EmptyRowsOutsideTheSampleAreZero) {
    Case c = sampled_case();
    c.seqlen_k = {20};
    c.mask = MaskType::bottom_right;
    c.window_right = 0;
    expect_red_and_right_green(c, "G5.2", [](const FwdArgs& a) {
        const std::int64_t row = std::min<std::int64_t>(row_outside_the_sample(a), 379);
        flip_lowest_bit_of_o(a, row, 63);
    });
    expect_red_and_right_green(c, "G5.2", [](const FwdArgs& a) {
        const std::int64_t row = std::min<std::int64_t>(row_outside_the_sample(a), 379);
        static_cast<float*>(a.lse.data)[a.lse.offset(0, 0, row, 0)] = -1e30F;
    });
}

TEST(AllRows, EmptyRowsOutsideTheSampleReturnTheirSink) {
    Case c = sampled_case();
    c.seqlen_k = {20};
    c.mask = MaskType::bottom_right;
    c.window_right = 0;
    c.sink_logits = SinkLogits::normal;
    expect_red_and_right_green(c, "G5.2", [](const FwdArgs& a) {
        const std::int64_t row = std::min<std::int64_t>(row_outside_the_sample(a), 379);
        static_cast<float*>(a.lse.data)[a.lse.offset(0, 0, row, 0)] += 1e-3F;
    });
}

Case one_key_a_row() {
    Case c = sampled_case();
    c.mask = MaskType::top_left;
    c.window_left = c.window_right = 0;
    return c;
}

TEST(AllRows, RowsOfOneKeyOutsideTheSampleAreCopiesOfV) {
    expect_red_and_right_green(one_key_a_row(), "G5.3", [](const FwdArgs& a) {
        flip_lowest_bit_of_o(a, row_outside_the_sample(a), 9);
    });
}

TEST(AllRows, TheLseOfARowOfOneKeyOutsideTheSampleIsItsScore) {
    // A unit of fp16 or so: far below the scores, and far above the limit of fp32 sums.
    expect_red_and_right_green(one_key_a_row(), "G5.3", [](const FwdArgs& a) {
        static_cast<float*>(a.lse.data)[a.lse.offset(0, 0, row_outside_the_sample(a), 0)] += 1e-3F;
    });
    Case c = one_key_a_row();
    c.bias = BiasType::alibi;
    expect_red_and_right_green(c, "G5.3", [](const FwdArgs& a) {
        static_cast<float*>(a.lse.data)[a.lse.offset(0, 0, row_outside_the_sample(a), 0)] = NAN;
    });
}

TEST(AllRows, ABiasCancelsInARowOfOneKey) {
    Case c = one_key_a_row();
    c.bias = BiasType::elementwise;
    c.sampled_rows = false;
    expect_red_and_right_green(c, "G5.3", [](const FwdArgs& a) {
        for (std::int64_t i = a.shape.seqlen_q - 1; i >= 0; --i) {
            const auto bias = load_code(a.bias.data, a.bias.type, a.bias.offset(0, 0, i, i));
            if (reference::decode(a.bias.type, bias) < -1e30) continue; // the bias hides the only key
            return flip_lowest_bit_of_o(a, i, 9);
        }
    });
}

TEST(AllRows, ABiasThatHidesAllKeysButOneLeavesACopyOfV) {
    // Two keys a row; where the bias hides one of them, the row is a copy of the other.
    Case c = one_key_a_row();
    c.window_left = 1;
    c.bias = BiasType::elementwise;
    expect_red_and_right_green(c, "G5.3", [](const FwdArgs& a) {
        const auto sample = reference::sampled_rows(a, 1);
        for (std::int64_t i = 1; i < a.shape.seqlen_q; ++i) {
            if (std::ranges::binary_search(sample, reference::RowId{0, 0, i})) continue;
            const auto hidden = [&](std::int64_t j) {
                return reference::decode(a.bias.type, load_code(a.bias.data, a.bias.type,
                                                                a.bias.offset(0, 0, i, j))) < -1e30;
            };
            if (hidden(i - 1) && !hidden(i)) return flip_lowest_bit_of_o(a, i, 9);
        }
        ADD_FAILURE() << "the bias hides no first key";
    });
}

TEST(AllRows, RandomBytesOutsideTheSample) {
    Case c = sampled_case();
    c.p_drop = 0.2;
    c.dropout_seed = 123;
    c.store_randval = true;
    expect_red_and_right_green(c, "G5.1", [](const FwdArgs& a) {
        const std::int64_t row = row_outside_the_sample(a);
        static_cast<std::uint8_t*>(a.randval.data)[a.randval.offset(0, 0, row, 399)] ^= 1U;
    });
}

TEST(AllRows, RandomBytesOfSinkTokensOutsideTheSample) {
    Case c = sampled_case();
    c.p_drop = 0.2;
    c.store_randval = true;
    c.mask = MaskType::top_left;
    c.window_left = 5;
    c.window_right = 0;
    c.sink_size = 3;
    expect_red_and_right_green(c, "G5.1", [](const FwdArgs& a) {
        const std::int64_t row = row_outside_the_sample(a);
        static_cast<std::uint8_t*>(a.randval.data)[a.randval.offset(0, 0, row, 2)] ^= 1U;
    });
}

TEST(CodeRule, SeesACodeThatTheElementLimitLetsThrough) {
    Case c = small_case();
    c.data_type = DataType::fp8;
    c.scale_o = 16.0;
    const auto numerics = FittingHostKernel().planned(to_problem(c, "gfx950"), nullptr).numerics;
    const CaseResult result = run_spoiled(c, [&](const FwdArgs& a) {
        const auto rows = reference::all_rows(a);
        const auto expected = reference::forward(a, rows, {.numerics = numerics, .threads = 1});
        for (std::int64_t r = 0; r < expected.o.rows(); ++r) {
            const reference::RowBound bound(expected, r);
            for (std::int64_t d = 0; d < expected.o.cols(); ++d) {
                const double exact = bound.expected(d), error = a.score.scale_o * bound.error(d);
                // The next code beyond those that the error explains.
                const double end = reference::round_to(a.o.type, std::abs(exact) + error);
                const double beyond = end + reference::spacing(a.o.type, end);
                if (beyond - std::abs(exact) > 0.99 * bound.limit(d) || beyond > 200.0) continue;
                const auto& id = rows[static_cast<std::size_t>(r)];
                store_code(a.o.data, a.o.type, a.o.offset(id.b, id.h, id.i, d),
                           reference::encode(a.o.type, std::copysign(beyond, exact)));
                return;
            }
        }
        ADD_FAILURE() << "the element limit lets no such code through";
    });
    EXPECT_EQ(result.outcome, Outcome::failed);
    EXPECT_FALSE(verdict(result, "G1").passed);
}

} // namespace
} // namespace fmha::harness::test
