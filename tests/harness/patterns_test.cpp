// Where the wrong elements are is told in words: a row, a head, an entry, columns, tiles, an edge of the mask, or little precision.

#include "harness/gates/pattern.hpp"
#include "tests/harness/gate_support.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace fmha::harness::test {
namespace {

TEST(Patterns, AreNamed) {
    const auto pattern =
        [](const std::function<bool(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& wrong) {
            return run_spoiled(small_case(),
                               [&](const FwdArgs& a) {
                                   for (std::int64_t b = 0; b < a.shape.batch; ++b)
                                       for (std::int64_t h = 0; h < a.shape.nhead_q; ++h)
                                           for (std::int64_t i = 0; i < a.shape.seqlen_q; ++i)
                                               for (std::int64_t c = 0; c < a.shape.hdim_v; ++c)
                                                   if (wrong(b, h, i, c))
                                                       set_o(a, b, h, i, c, get_o(a, b, h, i, c) + 1.0);
                               })
                .pattern;
        };
    using I = std::int64_t;
    EXPECT_NE(pattern([](I, I, I i, I) { return i == 69; }).find("only the last query row"),
              std::string::npos);
    EXPECT_NE(pattern([](I, I, I, I c) { return c >= 48; }).find("only columns from 48 on"),
              std::string::npos);
    EXPECT_NE(pattern([](I, I h, I, I) { return h == 1; }).find("only head 1 of 2"), std::string::npos);
    EXPECT_NE(pattern([](I b, I, I, I) { return b == 0; }).find("only entry 0 of 2"), std::string::npos);
    EXPECT_NE(pattern([](I, I, I i, I) { return i >= 32 && i < 64; }).find("whole tiles of 32"),
              std::string::npos);
    EXPECT_NE(pattern([](I, I, I, I) { return true; }).find("everywhere"), std::string::npos);
    EXPECT_NE(pattern([](I, I, I i, I) { return i < 69; }).find("only rows 0 to 68 of 70 (mask edge)"),
              std::string::npos);
}

std::string pattern_of_heads(std::initializer_list<std::int64_t> heads, double ratio) {
    std::vector<WrongElement> wrong;
    for (const std::int64_t h : heads)
        for (std::int64_t i = 0; i < 70; i += 3)
            wrong.push_back({.h = h, .row = i, .column = i % 5, .length = 70, .ratio = ratio});
    return classify(
        wrong, {.column_axis = Axis::v_channel, .batch = 1, .heads = 6, .columns = 64, .checked_rows = 420});
}

TEST(Patterns, NameTheHeadsThatAreWrong) {
    EXPECT_THAT(pattern_of_heads({1, 2, 4}, 100.0),
                testing::EndsWith("only heads 1, 2 and 4 of 6 (head map or a per-head array)"));
    // Two elements are wrong in some heads by chance.
    EXPECT_EQ(
        classify(
            {{.h = 1, .row = 5, .column = 3, .length = 70, .ratio = 9.0},
             {.h = 4, .row = 60, .column = 9, .length = 70, .ratio = 9.0}},
            {.column_axis = Axis::v_channel, .batch = 1, .heads = 6, .columns = 64, .checked_rows = 420}),
        "2 of 420 checked rows");
}

// Gates G2.row and G2.element find these: a row has some entry, some head and some number of keys, and nearly all of its elements are wrong.
TEST(Patterns, OfASingleRowTellItsPlace) {
    const PatternContext context{
        .batch = 2, .heads = 4, .columns = 64, .checked_rows = 560, .median_partners = 30};
    const auto row = [](std::int64_t i, std::int64_t first_column, std::int64_t partners) {
        std::vector<WrongElement> wrong;
        for (std::int64_t c = first_column; c < 64; ++c)
            wrong.push_back(
                {.b = 1, .h = 2, .row = i, .column = c, .length = 70, .partners = partners, .ratio = 9.0});
        return wrong;
    };
    const std::string place = "1 of 560 checked rows: only query row ";
    EXPECT_EQ(classify(row(41, 1, 42), context),
              place + "41 of entry 1, head 2 (a race, or the edge of a tile or of the mask)");
    EXPECT_EQ(classify(row(69, 0, 70), context), place + "69 of entry 1, head 2 (query tail)");
    EXPECT_EQ(classify(row(3, 0, 0), context),
              place + "3 of entry 1, head 2 (it sees no key: 0 and -inf expected)");
    // Half of the columns are no chance.
    EXPECT_EQ(classify(row(41, 32, 42), context),
              place +
                  "41 of entry 1, head 2 (a race, or the edge of a tile or of the mask); only columns from "
                  "32 on (value dimension tail)");
}

TEST(Patterns, WhatTwoRowsShareByChanceIsNotTold) {
    const auto rows = [](std::int64_t count) {
        std::vector<WrongElement> wrong;
        for (std::int64_t i = 0; i < count; ++i)
            wrong.push_back({.b = i % 2,
                             .h = i % 4,
                             .row = 36 + 3 * i,
                             .column = 5 * i,
                             .length = 70,
                             .partners = 37 + 3 * i,
                             .ratio = 9.0});
        return classify(wrong,
                        {.batch = 2, .heads = 4, .columns = 64, .checked_rows = 560, .median_partners = 30});
    };
    EXPECT_THAT(rows(2), testing::Not(testing::HasSubstr("median")));
    EXPECT_THAT(rows(8), testing::HasSubstr("only rows that see more keys than the median"));
}

TEST(Patterns, TellLittlePrecisionFromWrongNumbers) {
    EXPECT_THAT(pattern_of_heads({0, 1, 2, 3, 4, 5}, 2.5),
                testing::HasSubstr("at most 2.5 times the limit (precision"));
    EXPECT_THAT(pattern_of_heads({0, 1, 2, 3, 4, 5}, 25.0), testing::EndsWith("144 of 420 checked rows"));
}

} // namespace
} // namespace fmha::harness::test
