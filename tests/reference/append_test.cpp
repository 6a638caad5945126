// Append-KV (section 18): both forms against each other, known answers, positions, places and refusals.
#include "dispatcher/types/error.hpp"
#include "reference/append.hpp"
#include "reference/numerics/formats.hpp"
#include "tests/reference/random_append.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace fmha::reference {
namespace {

using test::AppendWish;
using test::RandomAppend;
using testing::HasSubstr;

TEST(Append, BothFormsAgreeOnRandomProblems) {
    std::int64_t paged = 0, rotated = 0;
    for (std::uint64_t seed = 1; seed <= 500 && !HasFailure(); ++seed) {
        const RandomAppend problem(seed);
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
        const AppendedRows by_row = append(problem.args(), Oracle::row_by_row);
        EXPECT_EQ(append_disagreements(by_row, append(problem.args(), Oracle::matrix)), 0);
        paged += problem.args().place.page_size > 0 ? 1 : 0;
        rotated += problem.args().rope.type != Rope::none ? 1 : 0;
    }
    EXPECT_GE(paged, 100);
    EXPECT_GE(rotated, 100);
}

/// One entry and head with one new key of 16 channels, which are 1, 2, …, 16, in a cache of 8 keys; the angles of position p
/// have cos = p and sin = 0.5 for pair 0, and cos = 1, sin = 0 for the others.
class WrittenProblem {
  public:
    explicit WrittenProblem(Rope rope, std::int64_t rotary_dim = 16) {
        for (int c = 0; c < 16; ++c) key_[static_cast<std::size_t>(c)] = half(c + 1);
        for (int p = 0; p < 10; ++p)
            for (int m = 0; m < 8; ++m) {
                cos_.push_back(half(m == 0 ? p : 1));
                sin_.push_back(half(m == 0 ? 0.5 : 0.0));
            }
        query_.assign(std::size_t{2} * 16, half(0.0));
        query_[0] = query_[16] = half(1.0);
        Shape& shape = args_.shape;
        shape.batch = shape.nhead_q = shape.nhead_k = 1;
        shape.hdim_q = shape.hdim_v = 16;
        shape.seqlen_q = 2;
        shape.seqlen_k = 8;
        args_.seqlen_knew = 1;
        args_.lengths.seqlen_k = &cached_;
        const auto view = [](auto& memory) {
            return TensorView{memory.data(), ElementType::fp16, 0, 0, 16, 1};
        };
        args_.k = args_.v = view(cache_);
        args_.k_new = args_.v_new = view(key_);
        args_.q = view(query_);
        args_.rope = {rope,
                      rope == Rope::none ? 0 : rotary_dim,
                      {cos_.data(), ElementType::fp16, 0, 0, 8, 1},
                      {sin_.data(), ElementType::fp16, 0, 0, 8, 1}};
    }
    WrittenProblem(const WrittenProblem&) = delete;
    WrittenProblem& operator=(const WrittenProblem&) = delete;
    ~WrittenProblem() = default;

    static std::uint16_t half(double x) { return static_cast<std::uint16_t>(encode(ElementType::fp16, x)); }
    AppendKvArgs& args() { return args_; }
    void cached(std::int32_t n) { cached_ = n; }
    void key(std::size_t c, double x) { key_[c] = half(x); }
    void angles(std::size_t position, double cosine, double sine) {
        cos_[8 * position] = half(cosine);
        sin_[8 * position] = half(sine);
    }

    /// Channel c of the row of a tensor that is written n-th, by both forms.
    double value(AppendTarget target, std::size_t n, std::int64_t c) const {
        const AppendedRows rows = append(args_, Oracle::row_by_row);
        EXPECT_EQ(append_disagreements(rows, append(args_, Oracle::matrix)), 0);
        for (const AppendedRow& row : rows.rows)
            if (row.target == target && n-- == 0)
                return c < row.cols ? decode(ElementType::fp16, rows.code_of(row, c)) : -1.0;
        return -2.0;
    }

  private:
    std::int32_t cached_ = 3;
    std::array<std::uint16_t, 16> key_{};
    std::array<std::uint16_t, 128> cache_{};
    std::vector<std::uint16_t> cos_, sin_, query_;
    AppendKvArgs args_;
};

TEST(Append, RotatesNeighboursOrHalves) {
    // Position 3: cos 3, sin 0.5 in pair 0.
    const WrittenProblem interleaved(Rope::interleaved), half(Rope::half_rotated);
    EXPECT_EQ(interleaved.value(AppendTarget::k, 0, 0), 1 * 3 - 2 * 0.5);
    EXPECT_EQ(interleaved.value(AppendTarget::k, 0, 1), 2 * 3 + 1 * 0.5);
    EXPECT_EQ(interleaved.value(AppendTarget::k, 0, 8), 9) << "cos 1, sin 0";
    EXPECT_EQ(half.value(AppendTarget::k, 0, 0), 1 * 3 - 9 * 0.5);
    EXPECT_EQ(half.value(AppendTarget::k, 0, 8), 9 * 3 + 1 * 0.5);
    EXPECT_EQ(half.value(AppendTarget::k, 0, 1), 2);
    for (int c = 0; c < 16; ++c) {
        EXPECT_EQ(interleaved.value(AppendTarget::v, 0, c), c + 1) << "V is not rotated";
        EXPECT_EQ(WrittenProblem(Rope::none).value(AppendTarget::k, 0, c), c + 1);
    }
}

TEST(Append, LeavesChannelsBeyondTheRotatedOnes) {
    WrittenProblem problem(Rope::half_rotated);
    problem.args().shape.hdim_q = 24; // the row goes on in the memory behind it
    problem.args().k_new.row_stride = 24;
    std::array<std::uint16_t, 24> key{};
    for (std::size_t c = 0; c < 24; ++c) key[c] = WrittenProblem::half(static_cast<double>(c) + 1.0);
    key[20] = 0xFE01; // a NaN with its payload
    problem.args().k_new.data = key.data();
    problem.args().q = {};
    const AppendedRows rows = append(problem.args());
    EXPECT_EQ(rows.rows[0].cols, 24);
    EXPECT_EQ(rows.rows[0].rotated, 16);
    EXPECT_EQ(rows.code_of(rows.rows[0], 16), key[16]);
    EXPECT_EQ(rows.code_of(rows.rows[0], 20), 0xFE01U);
    EXPECT_EQ(append_disagreements(rows, append(problem.args(), Oracle::row_by_row)), 0);
}

// V-5: rows of Q advance with a mask only.
TEST(Append, TakesThePositionsOfQueriesFromTheMask) {
    WrittenProblem problem(Rope::interleaved);
    EXPECT_EQ(problem.value(AppendTarget::q, 0, 0), 3);
    EXPECT_EQ(problem.value(AppendTarget::q, 1, 0), 3);
    problem.args().has_mask = true;
    EXPECT_EQ(problem.value(AppendTarget::q, 0, 0), 3);
    EXPECT_EQ(problem.value(AppendTarget::q, 1, 0), 4);
    EXPECT_EQ(problem.value(AppendTarget::q, 1, 1), 0.5);
    problem.args().seqlen_knew = 0;
    EXPECT_EQ(problem.value(AppendTarget::k, 0, 0), -2.0) << "no key is added";
    EXPECT_EQ(problem.value(AppendTarget::q, 1, 0), 4) << "and Q is rotated all the same (V-3)";
    problem.args().rope.type = Rope::none;
    EXPECT_TRUE(append(problem.args()).rows.empty());
}

// 1025 · 48 = 49200 lies half way between two values of fp16, so that a part of 2^-48 decides, which binary64 loses.
TEST(Append, RoundsTheExactSum) {
    WrittenProblem problem(Rope::interleaved);
    problem.cached(0);
    const auto rotated_first = [&](double x0, double x1, double cosine, double sine) {
        problem.key(0, x0);
        problem.key(1, x1);
        problem.angles(0, cosine, sine);
        return problem.value(AppendTarget::k, 0, 0);
    };
    EXPECT_EQ(rotated_first(1025, -0x1p-24, 48, 0x1p-24), 49216.0) << "49200 and a little more";
    EXPECT_EQ(rotated_first(1025, 0x1p-24, 48, 0x1p-24), 49184.0) << "49200 and a little less";
    EXPECT_EQ(rotated_first(1025, 0, 48, 0x1p-24), 49216.0) << "a tie goes to the even mantissa";
    EXPECT_EQ(rotated_first(60000, -60000, 1, 1), std::numeric_limits<double>::infinity());
}

TEST(Append, PutsKeysIntoPages) {
    WrittenProblem problem(Rope::none);
    std::array<std::uint16_t, std::size_t{3} * 16> keys{};
    const std::array<std::int32_t, 4> table{5, 2, -1, 9};
    AppendKvArgs& args = problem.args();
    args.k_new.data = args.v_new.data = keys.data();
    args.seqlen_knew = 3;
    args.place.block_table = table.data();
    args.place.block_table_stride = 4;
    args.place.page_size = 128;
    args.place.page_count = 6;
    problem.cached(126);
    const auto places = [&](Oracle oracle) {
        std::vector<std::pair<std::int64_t, std::int64_t>> out;
        for (const AppendedRow& row : append(args, oracle).rows)
            if (row.target == AppendTarget::v) out.emplace_back(row.slot, row.row);
        return out;
    };
    const std::vector<std::pair<std::int64_t, std::int64_t>> expected{{5, 126}, {5, 127}, {2, 0}};
    EXPECT_EQ(places(Oracle::row_by_row), expected);
    EXPECT_EQ(places(Oracle::matrix), expected);
}

TEST(Append, SaysWhatItCannotDo) {
    const auto refusal = [](const std::function<void(RandomAppend&)>& spoil,
                            AppendWish wish = {.keys = true}) {
        RandomAppend problem(7, wish);
        EXPECT_NO_THROW(append(problem.args()));
        spoil(problem);
        std::string said = "nothing";
        for (const Oracle oracle : {Oracle::row_by_row, Oracle::matrix}) try {
                (void)append(problem.args(), oracle);
            } catch (const Error& error) {
                said = error.what();
            }
        return said;
    };
    const AppendWish paged{.paged = true, .keys = true}, slots{.slots = true, .keys = true},
        rope{.rope = true, .queries = true, .keys = true};
    EXPECT_THAT(refusal([](auto& p) { p.cached()[0] = 1000; }), HasSubstr("V-3: entry 0 has 1000 keys"));
    EXPECT_THAT(refusal([](auto& p) { p.cached()[0] = -1; }), HasSubstr("V-1: seqlen_k of entry 0 is -1"));
    EXPECT_THAT(refusal([](auto& p) { p.args().lengths.seqlen_k = nullptr; }), HasSubstr("V-1"));
    EXPECT_THAT(refusal([](auto& p) { p.args().seqlen_knew = -1; }), HasSubstr("seqlen_knew is -1"));
    EXPECT_THAT(refusal([](auto& p) {
                    p.cached()[0] = 5;
                    p.args().seqlen_knew = std::numeric_limits<std::int64_t>::max();
                }),
                HasSubstr("V-3: entry 0 has 5 keys and is to get 9223372036854775807"));
    EXPECT_THAT(refusal([](auto& p) { p.cached()[1] = 1000; }, paged), HasSubstr("entry 1 has 1000 keys"));
    EXPECT_THAT(
        refusal([](auto& p) { p.block_table()[static_cast<std::size_t>(p.cached()[0] / 128)] = 400; }, paged),
        HasSubstr("P-2: block_table of entry 0 has page 400"));
    EXPECT_THAT(
        refusal([](auto& p) { p.block_table()[static_cast<std::size_t>(p.cached()[0] / 128)] = -1; }, paged),
        HasSubstr("has page -1"));
    EXPECT_THAT(refusal(
                    [](auto& p) {
                        const auto stride = static_cast<std::size_t>(p.args().place.block_table_stride);
                        p.cached()[0] = p.cached()[1] = 3;
                        p.block_table()[0] = p.block_table()[stride];
                    },
                    paged),
                HasSubstr("V-2: entries 0 and 1 append to the same row 3"));
    EXPECT_THAT(refusal([](auto& p) { p.slots()[0] = -2; }, slots),
                HasSubstr("P-6: cache_batch_idx of entry 0 is -2"));
    EXPECT_THAT(refusal(
                    [](auto& p) {
                        p.args().place.page_count = 5;
                        p.slots()[0] = 5;
                    },
                    slots),
                HasSubstr("P-6: entry 0 has slot 5 of the cache, which has 5 slots"));
    EXPECT_THAT(refusal([](auto& p) { p.args().rope.rotary_dim = 24; }, rope),
                HasSubstr("V-4: rotary_dim is 24"));
    EXPECT_THAT(refusal([](auto& p) { p.args().rope.cos = {}; }, rope), HasSubstr("cos must be"));
    EXPECT_THAT(refusal([](auto& p) { p.args().q.type = ElementType::fp32; }, rope), HasSubstr("q must be"));
    EXPECT_THAT(refusal([](auto& p) { p.args().k_new = {}; }), HasSubstr("k_new must be"));
    EXPECT_THAT(refusal([](auto& p) { p.args().k.type = p.args().k_new.type = ElementType::fp32; }, rope),
                HasSubstr("V-7"));
}

TEST(ValuesApart, CountsAcrossZero) {
    const auto apart = [](double x, double y) {
        return values_apart(ElementType::fp16, encode(ElementType::fp16, x), encode(ElementType::fp16, y));
    };
    EXPECT_EQ(apart(1.0, 1.0), 0);
    EXPECT_EQ(apart(1.0, 1.0 + 0x1p-10), 1);
    EXPECT_EQ(apart(1.0, 1.0 - 0x1p-11), 1);
    EXPECT_EQ(apart(-2.0, -2.0 - 0x1p-9), 1);
    EXPECT_EQ(apart(0.0, -0.0), 0);
    EXPECT_EQ(apart(0x1p-24, -0x1p-24), 2);
    EXPECT_EQ(apart(65504.0, std::numeric_limits<double>::infinity()), 1);
    EXPECT_EQ(values_apart(ElementType::bf16, 0x7F80, 0x7FC0), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(values_apart(ElementType::bf16, 0xFFC0, 0x7FC1), 0);
    EXPECT_THROW((void)values_apart(ElementType::fp32, 0, 0), Error);
}

} // namespace
} // namespace fmha::reference
