// Values relative to the tile of the planned kernel: they become plain numbers before a case has its name.

#include "harness/cases/case_file.hpp"
#include "harness/cases/relative_text.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>

namespace fmha::harness {
namespace {

using testing::ElementsAre;

/// A planner that knows one kernel.
TilePlanner always(std::int16_t m0, std::int16_t n0) {
    return [m0, n0](const Case&) { return Tile{.m0 = m0, .n0 = n0}; };
}

/// A complete file with `more` spliced in.
CaseFile file(const std::string& more) {
    return CaseFile::parse(
        fmt::format(R"({{"about": "a", "family": "fwd", "tier": "smoke", "fill": "normal", {}}})", more), "X",
        "fwd/x");
}

std::vector<std::string> names(const CaseFile& file, const TilePlanner& planner) {
    std::vector<std::string> result;
    for (const auto& concrete : file.expand(Tier::smoke, planner)) result.push_back(concrete.id);
    return result;
}

TEST(RelativeValues, AreNumbersInTheName) {
    const auto edges =
        file(R"json("each": {"seqlen_k": ["around(2*tile_n0)"], "mask": ["b:tile_m0-1,0,tile_n0+1"]},
                               "also": [{"seqlen": "tile_m0+1:7", "batch": 1}])json");
    EXPECT_THAT(names(edges, always(128, 64)),
                ElementsAre("fwd/x[seqlen_k=127,mask=b:127,0,65]@1", "fwd/x[seqlen_k=128,mask=b:127,0,65]@1",
                            "fwd/x[seqlen_k=129,mask=b:127,0,65]@1",
                            "fwd/x[batch=1,seqlen_q=129,seqlen_k=7,mask=0]@1"));
    EXPECT_THAT(names(edges, always(16, 32)), testing::Contains("fwd/x[seqlen_k=65,mask=b:15,0,33]@1"));
}

TEST(RelativeValues, StayWithin64Bits) {
    std::string sum = "tile_m0";
    for (int n = 0; n < 20; ++n) sum += "+1000000000*1000000000";
    EXPECT_EQ(at_tile("tile_m0+1000000000*1000000000", Tile{.m0 = 64}), "1000000000000000064");
    EXPECT_EQ(at_tile(sum, Tile{.m0 = 64}), std::nullopt);
}

TEST(RelativeValues, NameReproducesWithoutAPlanner) {
    const auto edges =
        file(R"json("each": {"seqlen_q": ["[tile_m0,-3+2*tile_m0*tile_n0]"], "mask": ["t:around(tile_n0),0"]},
                               "set": {"mode": "group"})json");
    const auto cases = edges.expand(Tier::smoke, always(4, 8));
    ASSERT_EQ(cases.size(), 3U);
    EXPECT_THAT(cases[0].seqlen_q, ElementsAre(4, 61));
    for (std::size_t i = 0; i < cases.size(); ++i) {
        EXPECT_EQ(cases[i].window_left, 7 + static_cast<std::int64_t>(i));
        const auto& id = cases[i].id;
        auto again = edges.from_overrides(id.substr(6, id.find("]@") - 6), id);
        again.id = edges.name(again);
        EXPECT_EQ(again, cases[i]) << id;
    }
}

TEST(RelativeValues, AreOfTheKernelThatIsPlannedForThem) {
    // Short problems get small tiles, which make them shorter still.
    const TilePlanner by_length = [](const Case& c) {
        return c.seqlen_q[0] > 100 ? Tile{.m0 = 64, .n0 = 64} : Tile{.m0 = 32, .n0 = 16};
    };
    EXPECT_THAT(
        names(file(R"json("each": {"seqlen_q": ["tile_m0+1"], "seqlen_k": ["3*tile_n0"]})json"), by_length),
        ElementsAre("fwd/x[seqlen_q=33,seqlen_k=48]@1"));
    EXPECT_THAT(names(file(R"json("each": {"seqlen_q": [16], "seqlen_k": ["3*tile_n0"]})json"), by_length),
                ElementsAre("fwd/x[seqlen_q=16,seqlen_k=48]@1"));
}

TEST(RelativeValues, ThatNeverSettleAreAnError) {
    const TilePlanner contrary = [](const Case& c) {
        return c.seqlen_q[0] > 64 ? Tile{.m0 = 32, .n0 = 32} : Tile{.m0 = 128, .n0 = 32};
    };
    try {
        file(R"json("each": {"seqlen_q": ["tile_m0"]})json").expand(Tier::smoke, contrary);
        FAIL() << "accepted";
    } catch (const InputError& error) {
        EXPECT_STREQ(error.what(), "X: seqlen_q: \"tile_m0\" does not settle: each tile that it is computed "
                                   "with makes another one be planned");
    }
}

TEST(RelativeValues, ACaseWithoutAKernelIsLeftToTheRun) {
    const auto cases =
        file(R"json("each": {"seqlen_k": ["tile_n0+1"]})json").expand(Tier::smoke, [](const Case&) {
            return std::optional<Tile>();
        });
    EXPECT_EQ(cases.size(), 1U);
}

TEST(RelativeValues, EqualNumbersAreOneCase) {
    const auto both = file(R"json("each": {"seqlen_k": ["around(tile_m0)", "around(tile_n0)", 65]})json");
    EXPECT_EQ(names(both, always(64, 64)).size(), 3U);
    EXPECT_EQ(names(both, always(64, 65)).size(), 4U);
    EXPECT_EQ(names(both, always(128, 32)).size(), 7U);
}

} // namespace
} // namespace fmha::harness
