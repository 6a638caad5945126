// Which kernels of the working list problems of Hopper get: every line of the table in docs/hopper.md, "Which problems get it".

#include "dispatcher/dispatcher.hpp"
#include "tests/catalog/catalog_support.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fmha::catalog::test {
namespace {

using testing::StartsWith;

struct Asked {
    std::int64_t hdim_q, hdim_v, rows;
    MaskClass mask = MaskClass::none;
    BiasType bias = BiasType::no_bias;
    bool soft_cap = false, paged = false;
    std::int64_t kv_heads = 2; ///< of eight query heads
};

Problem problem_of(const Asked& asked) {
    ProblemBuilder builder;
    builder.api_family(asked.paged ? ApiFamily::fwd_pagedkv : ApiFamily::fwd)
        .gfx_arch("sm_90")
        .data_type(DataType::bf16)
        .dims(asked.hdim_q, asked.hdim_v, 2, asked.rows, asked.rows)
        .nheads(8, asked.kv_heads)
        .bias_type(asked.bias)
        .logits_soft_cap(asked.soft_cap);
    if (asked.mask != MaskClass::none) builder.mask_type(MaskType::bottom_right);
    if (asked.mask == MaskClass::generic) builder.window(200, 0);
    if (asked.paged) {
        Presence presence;
        presence.seqlen_k = presence.block_table = true;
        builder.paged_kv(true).page_size(128).variable_lengths(presence);
    }
    return builder.build();
}

/// The kernel that the working list has for it.
std::optional<KernelConfig> kernel_of(const Asked& asked) {
    static const auto registry = [] {
        Request house = request(RuleSet::house, {ArchName("sm_90")});
        house.families = only({KernelFamily::fwd, KernelFamily::fwd_pagedkv});
        auto filled = std::make_unique<Registry>();
        const std::vector<KernelConfig> kernels = list(archs(), house);
        filled->add(std::span<const KernelConfig>(kernels));
        return filled;
    }();
    static const Dispatcher dispatcher(*registry);
    const ExecutionPlan plan = dispatcher.plan(problem_of(asked));
    if (!plan.valid()) return std::nullopt;
    return plan.stages()[0].kernel->config;
}

/// "ws 128x176 none": pipeline, tile of rows by keys, mask class.
std::string planned(const Asked& asked) {
    const auto kernel = kernel_of(asked);
    if (!kernel) return "nothing";
    return fmt::format("{} {}x{} {}", to_string(kernel->algorithm.pipeline), kernel->algorithm.tile.m0,
                       kernel->algorithm.tile.n0, to_string(kernel->signature.mask));
}

constexpr std::array masks{MaskClass::none, MaskClass::causal, MaskClass::generic};

/// The tile of `asked` under each mask class, the kernel of which is that of the class itself.
void expect_tiles(Asked asked, const std::array<std::string, masks.size()>& tiles) {
    for (std::size_t i = 0; i < masks.size(); ++i) {
        asked.mask = masks.at(i);
        EXPECT_EQ(planned(asked), fmt::format("ws {} {}", tiles.at(i), to_string(asked.mask)))
            << fmt::format("{}x{}, {} rows, bias {}, soft cap {}, paged {}", asked.hdim_q, asked.hdim_v,
                           asked.rows, to_string(asked.bias), asked.soft_cap, asked.paged);
    }
}

TEST(PlansOfHopper, Of64ChannelsHaveOneToThreeTeams) {
    for (const std::int64_t rows : {65, 256}) expect_tiles({64, 64, rows}, {"128x128", "64x64", "128x128"});
    for (const std::int64_t rows : {257, 1024}) {
        expect_tiles({64, 64, rows}, {"192x128", "64x64", "128x128"});
        for (const BiasType bias : {BiasType::elementwise, BiasType::alibi})
            expect_tiles({.hdim_q = 64, .hdim_v = 64, .rows = rows, .bias = bias},
                         {"128x128", "64x64", "128x128"});
    }
    for (const std::int64_t rows : {1025, 8192}) {
        expect_tiles({64, 64, rows}, {"192x128", "192x128", "192x128"});
        for (const BiasType bias : {BiasType::elementwise, BiasType::alibi})
            expect_tiles({.hdim_q = 64, .hdim_v = 64, .rows = rows, .bias = bias},
                         {"128x128", "128x128", "128x128"});
        expect_tiles({.hdim_q = 64, .hdim_v = 64, .rows = rows, .soft_cap = true},
                     {"128x128", "128x128", "128x128"});
    }
}

TEST(PlansOfHopper, Of128ChannelsHave176KeysWithoutAMask) {
    for (const std::int64_t rows : {65, 2048})
        expect_tiles({128, 128, rows}, {"128x128", "128x128", "128x128"});
    for (const std::int64_t rows : {2049, 16384}) {
        expect_tiles({128, 128, rows}, {"128x176", "128x128", "128x128"});
        for (const BiasType bias : {BiasType::elementwise, BiasType::alibi})
            expect_tiles({.hdim_q = 128, .hdim_v = 128, .rows = rows, .bias = bias},
                         {"128x128", "128x128", "128x128"});
        expect_tiles({.hdim_q = 128, .hdim_v = 128, .rows = rows, .soft_cap = true},
                     {"128x128", "128x128", "128x128"});
    }
}

TEST(PlansOfHopper, Of256ChannelsHave80KeysButUnderAWindow) {
    for (const std::int64_t rows : {65, 1024}) expect_tiles({256, 256, rows}, {"128x64", "128x64", "128x64"});
    for (const std::int64_t rows : {1025, 16384}) {
        expect_tiles({256, 256, rows}, {"128x80", "128x80", "128x64"});
        expect_tiles({.hdim_q = 256, .hdim_v = 256, .rows = rows, .bias = BiasType::elementwise},
                     {"128x80", "128x80", "128x64"});
        expect_tiles({.hdim_q = 256, .hdim_v = 256, .rows = rows, .bias = BiasType::alibi},
                     {"128x64", "128x64", "128x64"});
        expect_tiles({.hdim_q = 256, .hdim_v = 256, .rows = rows, .soft_cap = true},
                     {"128x80", "128x80", "128x64"});
    }
}

TEST(PlansOfHopper, OfOtherHeadDimensionsHaveOneTile) {
    for (const std::int64_t rows : {65, 1000, 16384}) {
        for (const std::int64_t hdim : {72, 80, 96}) {
            expect_tiles({hdim, hdim, rows}, {"128x128", "128x128", "128x128"});
            expect_tiles({.hdim_q = hdim, .hdim_v = hdim, .rows = rows, .soft_cap = true},
                         {"128x128", "128x128", "128x128"});
        }
        expect_tiles({192, 128, rows}, {"128x128", "128x128", "128x128"});
        expect_tiles({192, 192, rows}, {"128x112", "128x112", "128x112"});
    }
}

TEST(PlansOfHopper, OfPagesHaveTilesThatDivideThem) {
    for (const auto& [hdim, tile] :
         {std::pair<std::int64_t, std::string>{64, "128x128"}, {128, "128x128"}, {256, "128x64"}})
        expect_tiles({.hdim_q = hdim, .hdim_v = hdim, .rows = 65, .paged = true}, {tile, tile, tile});
    const Asked many{.hdim_q = 64, .hdim_v = 64, .rows = 16384, .paged = true};
    expect_tiles(many, {"192x128", "192x128", "128x128"});
    for (const auto& [hdim, tile] : {std::pair<std::int64_t, std::string>{128, "128x128"}, {256, "128x64"}})
        expect_tiles({.hdim_q = hdim, .hdim_v = hdim, .rows = 16384, .paged = true}, {tile, tile, tile});
}

TEST(PlansOfHopper, OfFewRowsAreOfOtherPipelines) {
    for (const std::int64_t hdim : {64, 80, 96, 128, 192, 256})
        for (const MaskClass mask : masks)
            EXPECT_THAT(planned({.hdim_q = hdim, .hdim_v = hdim, .rows = 64, .mask = mask, .kv_heads = 8}),
                        StartsWith("qr"));
}

TEST(PlansOfHopper, OfFewRowsOfGroupedHeadsPackThem) {
    for (const std::int64_t rows : {1, 16, 63, 64}) {
        expect_tiles({64, 64, rows}, {"64x128", "64x128", "64x128"});
        expect_tiles({128, 128, rows}, {"64x96", "64x96", "64x96"});
        expect_tiles({.hdim_q = 128, .hdim_v = 120, .rows = rows, .soft_cap = true},
                     {"64x96", "64x96", "64x96"});
        for (const BiasType bias : {BiasType::alibi, BiasType::elementwise})
            EXPECT_THAT(planned({.hdim_q = 128, .hdim_v = 128, .rows = rows, .bias = bias}),
                        StartsWith("qr"));
        EXPECT_THAT(planned({128, 256, rows}), StartsWith("qr"));
    }
}

TEST(PlansOfHopper, OfAFewTokensOverACacheShareTiles) {
    const auto shares = [](const Asked& asked) {
        const auto kernel = kernel_of(asked);
        return kernel && kernel->algorithm.constraint.view() == "rows_of_even_groups";
    };
    // Those of 256 channels would spill.
    EXPECT_FALSE(shares({.hdim_q = 256, .hdim_v = 256, .rows = 2, .paged = true}));
    for (const std::int64_t hdim : {40, 64, 80, 128})
        for (const MaskClass mask : masks) {
            Asked asked{.hdim_q = hdim, .hdim_v = hdim, .rows = 2, .mask = mask, .paged = true};
            EXPECT_TRUE(shares(asked)) << hdim;
            asked.soft_cap = true;
            asked.rows = 8;
            EXPECT_TRUE(shares(asked)) << hdim;
            for (const std::int64_t rows : {1, 9, 16}) {
                asked.rows = rows;
                EXPECT_FALSE(shares(asked)) << hdim << " " << rows;
            }
        }
    const Asked few{.hdim_q = 128, .hdim_v = 128, .rows = 4, .paged = true};
    for (const BiasType bias : {BiasType::alibi, BiasType::elementwise}) {
        Asked biased = few;
        biased.bias = bias;
        EXPECT_FALSE(shares(biased));
    }
    Asked odd = few;
    odd.kv_heads = 8;
    EXPECT_FALSE(shares(odd));
}

TEST(PlansOfHopper, WithASoftCapAreOfOtherPipelinesAbove128Channels) {
    for (const std::int64_t hdim : {136, 192})
        for (const MaskClass mask : masks)
            EXPECT_THAT(
                planned({.hdim_q = hdim, .hdim_v = hdim, .rows = 4096, .mask = mask, .soft_cap = true}),
                StartsWith("qr "));
}

/// S-9: its table of key tiles is that of the kernels, and no plan has more splits than tiles.
TEST(HopperPlans, HaveNoMoreSplitsThanTilesOfKeys) {
    Request house = request(RuleSet::house, {ArchName("sm_90")});
    house.families = only({KernelFamily::fwd_splitkv, KernelFamily::fwd_splitkv_combine});
    Registry registry;
    const std::vector<KernelConfig> kernels = list(archs(), house);
    registry.add(std::span<const KernelConfig>(kernels));
    const Dispatcher dispatcher(registry, {{ArchName("sm_90"), 132, 32}});
    std::size_t bounded = 0;
    for (const auto& [hdim_q, hdim_v] :
         {std::pair{32, 32}, {40, 64}, {64, 128}, {128, 128}, {192, 128}, {256, 256}})
        for (const DataType type : {DataType::bf16, DataType::fp8})
            for (const std::int64_t rows : {1, 2, 8, 16, 17})
                for (const std::int64_t batch : {1, 3, 40})
                    for (const std::int64_t kv_heads : {1, 2, 8})
                        for (const BiasType bias : {BiasType::no_bias, BiasType::alibi})
                            for (const std::int64_t keys : {1, 100, 513}) {
                                const Problem problem = ProblemBuilder()
                                                            .api_family(ApiFamily::fwd_splitkv)
                                                            .gfx_arch("sm_90")
                                                            .data_type(type)
                                                            .dims(hdim_q, hdim_v, batch, rows, keys)
                                                            .nheads(8, kv_heads)
                                                            .bias_type(bias)
                                                            .num_splits(0)
                                                            .build();
                                const ExecutionPlan plan = dispatcher.plan(problem);
                                if (!plan.valid()) continue; // fp8 has no bias
                                const std::int64_t tile = plan.stages()[0].kernel->config.algorithm.tile.n0;
                                const std::int64_t tiles = (keys + tile - 1) / tile;
                                const SplitChoice choice = dispatcher.choice_of_splits(problem);
                                EXPECT_LE(plan.problem().num_splits, tiles) << plan.problem().to_string();
                                if (choice.key_tiles == 0) continue;
                                EXPECT_EQ(choice.key_tiles, tiles) << plan.problem().to_string();
                                ++bounded;
                            }
    EXPECT_GT(bounded, 200U);
}

} // namespace
} // namespace fmha::catalog::test
