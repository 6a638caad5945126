// The promises of smoke about the tiles that run: every feature walks over several of them, and every edge is met one before,
// at and one behind their boundaries. Counted from the cases and the kernels that are planned for them; nothing is run.

#include "dispatcher/dispatcher.hpp"
#include "harness/cases/case_enums.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"
#include "harness/run/planned_kernels.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "reference/numerics/mask.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

namespace fmha::harness::test {
namespace {

/// A case that some kernel takes, and the tile of that kernel.
struct PlannedCase {
    Case c;
    Tile tile;
};

const std::vector<PlannedCase>& smoke() {
    static const auto planned = [] {
        const auto tiles = house_tiles("gfx950");
        std::vector<PlannedCase> result;
        for (auto& c :
             load_cases({}, {.root = FMHA_CASES_DIR, .family = ApiFamily::fwd, .planned_tile = tiles}))
            if (const auto tile = tiles(c)) result.push_back({std::move(c), *tile});
        return result;
    }();
    return planned;
}

/// Lengths of the entries of a case, each pair once.
std::set<std::pair<std::int64_t, std::int64_t>> lengths(const Case& c) {
    std::set<std::pair<std::int64_t, std::int64_t>> result;
    for (std::size_t b = 0; b < static_cast<std::size_t>(c.batch); ++b)
        result.emplace(c.seqlen_q[c.seqlen_q.size() > 1 ? b : 0], c.seqlen_k[c.seqlen_k.size() > 1 ? b : 0]);
    return result;
}

MaskArgs mask_of(const Case& c) {
    return {c.mask, c.window_left, c.window_right, c.sink_size};
}

std::string mask_class(const Case& c) {
    if (c.mask == MaskType::no_mask) return "mask none";
    const bool causal = c.mask != MaskType::window_generic && c.window_left < 0 && c.sink_size == 0;
    return causal ? "mask causal" : "mask generic";
}

/// Whether some block of rows sees keys of three key tiles, and another sees any.
bool walks(const Case& c, const Tile& tile) {
    for (const auto& [rows, keys] : lengths(c)) {
        std::size_t most = 0, seeing = 0;
        for (std::int64_t row0 = 0; row0 < rows; row0 += tile.m0) {
            std::set<std::int64_t> seen;
            for (std::int64_t i = row0; i < std::min(rows, row0 + tile.m0); ++i)
                for (std::int64_t j = 0; j < keys; ++j)
                    if (reference::visible(mask_of(c), rows, keys, i, j)) seen.insert(j / tile.n0);
            most = std::max(most, seen.size());
            seeing += seen.empty() ? 0U : 1U;
        }
        if (most >= 3 && seeing >= 2) return true;
    }
    return false;
}

std::vector<std::string> features(const Case& c) {
    std::vector<std::string> result{mask_class(c)};
    if (c.sink_size > 0) result.emplace_back("sink tokens");
    if (c.sink_logits != SinkLogits::none) result.emplace_back("sink logits");
    if (c.bias != BiasType::no_bias)
        result.push_back(fmt::format("bias {}:{}", c.bias == BiasType::elementwise ? 'e' : 'a', c.bias_rank));
    if (c.logits_soft_cap > 0.0) result.emplace_back("soft-cap");
    if (c.p_drop > 0.0) result.emplace_back(c.store_randval ? "dropout with stored bytes" : "dropout");
    if (c.qscale != QScale::no_scale) result.push_back(fmt::format("descale {}", to_string(c.qscale)));
    return result;
}

TEST(Tiles, EveryFeatureOfEveryTypeWalksOverThreeKeyTilesAndTwoRowTiles) {
    std::map<std::string, bool> walked;
    for (const auto& [c, tile] : smoke()) {
        std::vector<bool*> open;
        for (const auto& feature : features(c))
            if (bool& done = walked[fmt::format("{}, {}", to_string(c.data_type), feature)]; !done)
                open.push_back(&done);
        if (open.empty() || !walks(c, tile)) continue;
        for (bool* done : open) *done = true;
    }
    EXPECT_GE(walked.size(), 80U);
    for (const auto& [feature, done] : walked)
        EXPECT_TRUE(done) << feature << ": no smoke case has it over three key tiles and two row tiles";
}

/// Distances −1, 0 and +1 from a boundary of tiles.
using Near = std::set<std::int64_t>;

void note(Near& near, std::int64_t position, std::int64_t tile) {
    const auto within = (position % tile + tile) % tile;
    if (within <= 1) near.insert(within);
    if (within == tile - 1) near.insert(-1);
}

/// The edges that one case meets, for each its distances from the boundaries of the tile that runs.
void note_edges(const Case& c, const Tile& tile, std::map<std::string, Near>& edges) {
    const auto kind = mask_class(c);
    for (const auto& [rows, keys] : lengths(c)) {
        if (rows == 0 || keys == 0) continue;
        note(edges["last query tile"], rows, tile.m0);
        note(edges["end of keys"], keys, tile.n0);
        if (kind == "mask none") continue;
        const auto [y, x] = reference::window_coordinates(mask_of(c), rows, keys);
        for (std::int64_t row0 = 0; row0 < rows; row0 += tile.m0) {
            const auto last = std::min(rows, row0 + tile.m0) - 1;
            // The first row's end decides whether a tile is seen whole, the last row's which tiles are visited.
            if (row0 + x > 0 && row0 + x <= keys) note(edges["upper, first row"], row0 + x, tile.n0);
            if (last + x > 0 && last + x <= keys) note(edges["upper, last row"], last + x, tile.n0);
            if (kind != "mask generic" || y >= rows) continue;
            if (row0 - y + 1 >= 0 && row0 - y + 1 < keys)
                note(edges["lower, first row"], row0 - y + 1, tile.n0);
            if (last - y + 1 >= 0 && last - y + 1 < keys)
                note(edges["lower, last row"], last - y + 1, tile.n0);
            if (c.sink_size == 0 || row0 >= keys) continue;
            note(edges["sink prefix"], c.sink_size, tile.n0);
            if (rows > keys) note(edges["sink rows"], keys, tile.m0);
        }
    }
}

TEST(Tiles, EveryEdgeIsMetAroundTheBoundariesOfEveryTileThatSmokePlans) {
    // A kernel that is planned only for as many rows as it has in a tile meets no more of them.
    static const std::set<std::string> one_row_tile{"last query tile", "sink rows"};
    std::map<std::tuple<std::int64_t, std::int64_t, std::string>, std::map<std::string, Near>> met;
    std::map<std::pair<std::int64_t, std::int64_t>, std::set<std::int64_t>> row_tiles;
    for (const auto& [c, tile] : smoke()) {
        auto& edges = met[{tile.m0, tile.n0, mask_class(c)}];
        note_edges(c, tile, edges);
        for (const auto& [rows, keys] : lengths(c))
            row_tiles[{tile.m0, tile.n0}].insert((rows + tile.m0 - 1) / tile.m0);
    }
    EXPECT_GE(met.size(), 15U);
    for (const auto& [kernel, edges] : met) {
        const auto& [m0, n0, kind] = kernel;
        std::vector<std::string> wanted{"last query tile", "end of keys"};
        if (kind != "mask none") wanted.insert(wanted.end(), {"upper, first row", "upper, last row"});
        if (kind == "mask generic")
            wanted.insert(wanted.end(), {"lower, first row", "lower, last row", "sink prefix", "sink rows"});
        for (const auto& edge : wanted) {
            const auto found = edges.find(edge);
            const Near near = found == edges.end() ? Near{} : found->second;
            const bool more_rows = *row_tiles[{m0, n0}].rbegin() > 1;
            if (!more_rows && one_row_tile.contains(edge)) continue;
            EXPECT_THAT(near, testing::ElementsAre(-1, 0, 1))
                << fmt::format("tile {}x{}, {}: {}", m0, n0, kind, edge);
        }
    }
}

TEST(Tiles, RelativeValuesSettleOnEveryArchitecture) {
    const auto archs = arch::ArchSet::built_in();
    for (const auto& tables : archs.all()) {
        const std::string name(tables.name().view());
        const auto cases = load_cases({"fwd/tile_edges", "fwd/tile_edges_short", "fwd/tile_walk"},
                                      {.root = FMHA_CASES_DIR, .planned_tile = house_tiles(name)});
        EXPECT_GE(cases.size(), 100U) << name;
    }
}

TEST(Tiles, TheCountsSeeWhatIsMissing) {
    Case c;
    c.seqlen_q = {65};
    c.seqlen_k = {129};
    EXPECT_TRUE(walks(c, {.m0 = 64, .n0 = 64}));
    EXPECT_FALSE(walks(c, {.m0 = 128, .n0 = 64})) << "one row tile";
    EXPECT_FALSE(walks(c, {.m0 = 64, .n0 = 128})) << "two key tiles";
    c.mask = MaskType::bottom_right;
    c.window_left = c.window_right = 0;
    EXPECT_FALSE(walks(c, {.m0 = 64, .n0 = 64})) << "a window that one tile holds, or two";
    std::map<std::string, Near> edges;
    note_edges(c, {.m0 = 64, .n0 = 64}, edges);
    EXPECT_THAT(edges["last query tile"], testing::ElementsAre(1));
    EXPECT_THAT(edges["lower, first row"], testing::ElementsAre(0));
    EXPECT_THAT(edges["upper, last row"], testing::ElementsAre(0, 1));
}

/// Tiles of warp groups by head dimension and by the length from which they serve.
TEST(Tiles, OfWarpGroupsAreAllPlannedBySmoke) {
    const auto key = [](const KernelConfig& config) {
        const Signature& s = config.signature;
        const Tile& tile = config.algorithm.tile;
        return fmt::format("{} h{}x{} {}x{} {}", to_string(s.family), s.hdim_q, s.hdim_v, tile.m0, tile.n0,
                           config.algorithm.constraint.view());
    };
    std::set<std::string> listed, planned;
    catalog::Request house;
    house.rules = catalog::RuleSet::house;
    house.targets = {ArchName("sm_90")};
    house.families = catalog::FamilySet::none();
    house.families.add(KernelFamily::fwd);
    house.families.add(KernelFamily::fwd_pagedkv);
    std::vector<KernelConfig> kernels;
    catalog::enumerate(arch::ArchSet::built_in(), house, [&](const KernelConfig& config) {
        kernels.push_back(config);
        if (config.algorithm.pipeline == Pipeline::ws) listed.insert(key(config));
    });
    Registry registry;
    registry.add(std::span<const KernelConfig>(kernels));
    const Dispatcher dispatcher(registry);
    for (const Case& c : load_cases({"fwd/warp_groups", "pagedkv/long_prompts"},
                                    {.root = FMHA_CASES_DIR, .planned_tile = house_tiles("sm_90")})) {
        const ExecutionPlan plan = dispatcher.plan(to_problem(c, "sm_90"));
        ASSERT_TRUE(plan.valid());
        const KernelConfig& config = plan.stages()[0].kernel->config;
        if (config.algorithm.pipeline == Pipeline::ws) planned.insert(key(config));
    }
    EXPECT_GT(listed.size(), 10U);
    EXPECT_THAT(planned, testing::ContainerEq(listed));
}

} // namespace
} // namespace fmha::harness::test
