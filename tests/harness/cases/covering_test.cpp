#include "harness/cases/covering.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>

namespace fmha::harness {
namespace {

using Pair = std::array<int, 4>; // feature, level, feature, level

bool has(const LevelRow& row, const Pair& pair) {
    return row[static_cast<std::size_t>(pair[0])] == pair[1] &&
           row[static_cast<std::size_t>(pair[2])] == pair[3];
}

/// All complete rows, by counting: the judge that the greedy algorithm does not share.
std::vector<LevelRow> all_rows(const std::vector<int>& counts, const Forbidden& forbidden) {
    std::vector<LevelRow> rows;
    LevelRow row(counts.size(), 0);
    while (true) {
        if (!forbidden(row)) rows.push_back(row);
        std::size_t f = 0;
        while (f < row.size() && ++row[f] == counts[f]) row[f++] = 0;
        if (f == row.size()) return rows;
    }
}

void expect_covering(const std::vector<int>& counts, const Forbidden& forbidden) {
    const auto rows = covering_array(counts, forbidden);
    const auto allowed = all_rows(counts, forbidden);
    for (const auto& row : rows) EXPECT_THAT(allowed, testing::Contains(row));
    for (int f = 0; f < static_cast<int>(counts.size()); ++f)
        for (int g = f + 1; g < static_cast<int>(counts.size()); ++g)
            for (int a = 0; a < counts[static_cast<std::size_t>(f)]; ++a)
                for (int b = 0; b < counts[static_cast<std::size_t>(g)]; ++b) {
                    const Pair pair{f, a, g, b};
                    const auto in = [&pair](const LevelRow& row) { return has(row, pair); };
                    EXPECT_EQ(std::ranges::any_of(rows, in), std::ranges::any_of(allowed, in))
                        << f << '=' << a << ' ' << g << '=' << b;
                }
}

const Forbidden nothing = [](const LevelRow&) { return false; };

TEST(CoveringArray, CoversEveryPair) {
    expect_covering({2, 2}, nothing);
    expect_covering({3, 1, 4}, nothing);
    expect_covering({4, 3, 2, 5, 2, 3}, nothing);
}

TEST(CoveringArray, IsMuchSmallerThanTheProduct) {
    EXPECT_LT(covering_array({4, 4, 4, 4, 4, 4, 4, 4}, nothing).size(), 60U);
    EXPECT_LT(covering_array({2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, nothing).size(), 16U);
}

TEST(CoveringArray, KeepsConstraintsAndWhatFollowsFromThem) {
    // 0 with 0 is forbidden; feature 1 level 1 needs feature 2 level 0, which feature 0 level 0 forbids: so
    // level 0 of feature 0 leaves feature 1 no level but 2.
    const Forbidden forbidden = [](const LevelRow& row) {
        return (row[0] == 0 && row[1] == 0) || (row[1] == 1 && row[2] == 1) || (row[0] == 0 && row[2] == 0);
    };
    expect_covering({3, 3, 2, 4}, forbidden);
}

TEST(CoveringArray, RandomConstraints) {
    std::mt19937 random(20261121);
    for (int round = 0; round < 30; ++round) {
        const std::vector<int> counts{3, 4, 2, 3, 2};
        std::vector<Pair> bans;
        for (int i = 0; i < 8; ++i) {
            const int f = static_cast<int>(random() % 5), g = static_cast<int>(random() % 5);
            if (f == g) continue;
            bans.push_back(
                {f, static_cast<int>(random() % static_cast<unsigned>(counts[static_cast<std::size_t>(f)])),
                 g, static_cast<int>(random() % static_cast<unsigned>(counts[static_cast<std::size_t>(g)]))});
        }
        expect_covering(counts, [&bans](const LevelRow& row) {
            return std::ranges::any_of(bans, [&row](const Pair& ban) { return has(row, ban); });
        });
    }
}

} // namespace
} // namespace fmha::harness
