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

TEST(Patterns, TellLittlePrecisionFromWrongNumbers) {
    EXPECT_THAT(pattern_of_heads({0, 1, 2, 3, 4, 5}, 2.5),
                testing::HasSubstr("at most 2.5 times the limit (precision"));
    EXPECT_THAT(pattern_of_heads({0, 1, 2, 3, 4, 5}, 25.0), testing::EndsWith("144 of 420 checked rows"));
}

} // namespace
} // namespace fmha::harness::test
