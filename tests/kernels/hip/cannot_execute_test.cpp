#include "kernels/targets/hip/cannot_execute.hpp"

#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/targets/hip/block_plan.hpp"
#include "tests/catalog/working_list.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <set>

namespace fmha::hip_target {
namespace {

using testing::HasSubstr;

KernelConfig plain() {
    KernelConfig config;
    config.arch = "gfx942";
    config.signature.data_type = DataType::fp16;
    config.signature.hdim_q = config.signature.hdim_v = 128;
    config.algorithm.tile = {.m0 = 128, .n0 = 128, .k0 = 32, .n1 = 128, .k1 = 32, .k0max = 128};
    config.algorithm.wave = {4, 1, 1, 4, 1, 1, 1, 1, 1};
    config.algorithm.warp = {32, 32, 16, 32, 32, 16, 16, 16, 16};
    return config;
}

TEST(CannotExecute, NamesWhatIsInTheWay) {
    ASSERT_EQ(cannot_execute(plain()), std::nullopt);
    const auto reason = [](const std::function<void(KernelConfig&)>& spoil) {
        KernelConfig config = plain();
        spoil(config);
        return cannot_execute(config).value_or("");
    };
    EXPECT_EQ(reason([](auto& c) { c.signature.family = KernelFamily::batch_prefill; }),
              "batch_prefill takes packed queries, pages and V by row (B-1)");
    EXPECT_THAT(reason([](auto& c) { c.signature.use_paged_kv = true; }), HasSubstr("paged keys"));
    EXPECT_THAT(reason([](auto& c) { c.signature.qscale = QScale::kv_blockscale; }),
                HasSubstr("batch_prefill"));
    EXPECT_THAT(reason([](auto& c) {
                    c.signature.data_type = DataType::mxfp8;
                    c.signature.qscale = QScale::mx;
                    c.signature.v_layout = VLayout::column;
                }),
                HasSubstr("gfx942 has no matrix instruction 32x32x16 or 32x32x16 for mxfp8"));
    EXPECT_THAT(reason([](auto& c) { c.signature.data_type = DataType::mxfp4; }),
                HasSubstr("mxfp4 and qscale none do not belong together"));
    EXPECT_THAT(reason([](auto& c) { c.signature.qscale = QScale::mx; }),
                HasSubstr("fp16 and qscale mx do not belong together"));
    EXPECT_THAT(reason([](auto& c) {
                    c.signature.data_type = DataType::mxfp4;
                    c.signature.qscale = QScale::mx;
                }),
                HasSubstr("V by column"));
    EXPECT_THAT(reason([](auto& c) { c.arch = "gfx900"; }), HasSubstr("instructions of gfx900"));
    EXPECT_EQ(reason([](auto& c) { c.algorithm.warp.k0 = 4; }),
              "gfx942 has no matrix instruction 32x32x4 or 32x32x16 for fp16");
    EXPECT_EQ(reason([](auto& c) { c.algorithm.warp.m1 = 8; }),
              "gfx942 has no matrix instruction 32x32x16 or 8x32x16 for fp16");
    EXPECT_THAT(reason([](auto& c) { c.algorithm.warp.m1 = c.algorithm.warp.n1 = 16; }),
                HasSubstr("32x32 and 16x16"));
    EXPECT_THAT(reason([](auto& c) { c.algorithm.wave.n0 = 2; }), HasSubstr("must own whole rows"));
    EXPECT_EQ(reason([](auto& c) { c.algorithm.tile.m0 = 64; }),
              "64 rows do not divide into 4 waves of whole instructions");
    EXPECT_THAT(reason([](auto& c) { c.algorithm.tile.n1 = 48; }), HasSubstr("n1=48"));
    EXPECT_THAT(reason([](auto& c) {
                    c.signature.data_type = DataType::fp32;
                    c.algorithm.warp = {32, 32, 8, 32, 32, 2, 1, 1, 1};
                }),
                HasSubstr("2 keys are too few"));
    EXPECT_THAT(reason([](auto& c) { c.signature.hdim_q = 256; }), HasSubstr("k0max=128"));
    EXPECT_THAT(reason([](auto& c) { c.algorithm.tile.k0 = c.algorithm.tile.k0max = 1024; }),
                HasSubstr("bytes of LDS, gfx942 has 65536"));
}

TEST(CannotExecute, NothingOfTheHouseCatalogue) {
    const auto archs = arch::ArchSet::built_in();
    for (const auto* name : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201", "sm_90"}) {
        int executed = 0;
        for (const KernelConfig& config : catalog::test::working_list(name, KernelFamily::fwd)) {
            const auto reason = cannot_execute(config);
            EXPECT_EQ(reason, std::nullopt) << identifier(config);
            executed += reason ? 0 : 1;
        }
        EXPECT_GT(executed, 2000) << name;
    }
}

/// The smallest tile of a micro-scaled type on one of its instructions.
KernelConfig micro_scaled(DataType type, std::int16_t side) {
    KernelConfig config = plain();
    config.arch = "gfx950";
    config.signature.data_type = type;
    config.signature.qscale = QScale::mx;
    config.signature.v_layout = VLayout::column;
    const auto depth = static_cast<std::int16_t>(2048 / side);
    config.algorithm.tile.k0 = config.algorithm.tile.k1 = depth;
    config.algorithm.warp = {side, side, depth, side, side, depth, 1, 1, 1};
    return config;
}

// The need of a scaled second product: the keys of a block in the lanes and elements whose scale is the block's.
TEST(WeightSwaps, BringTheKeysOfABlockTogether) {
    struct Expected {
        DataType type;
        std::int16_t side;
        int swaps;
    };
    for (const auto& [type, side, swaps] :
         {Expected{DataType::mxfp8, 32, 0}, Expected{DataType::mxfp4, 32, 1},
          Expected{DataType::mxfp8, 16, 1}, Expected{DataType::mxfp4, 16, 2}}) {
        BlockPlan plan = plan_of(micro_scaled(type, side));
        ASSERT_EQ(plan.problem, PlanProblem::none) << to_string(type) << " " << side;
        EXPECT_EQ(plan.weights.swap_count, swaps) << to_string(type) << " " << side;
        DepthOrder& order = plan.value.order;
        std::set<int> keys;
        for (int lane = 0; lane < 64; ++lane)
            for (int e = 0; e < plan.second.right_elements; ++e) {
                const int key = order.element[e] + order.lane.of_lane(lane);
                EXPECT_EQ(key / 32, plan.second.right_k.at(lane, e) / 32)
                    << "lane " << lane << ", element " << e;
                keys.insert(key);
            }
        EXPECT_EQ(keys.size(), static_cast<std::size_t>(plan.second.depth));

        const auto keep_blocks = [&] {
            return planning::weights_keep_blocks(plan.first.acc, plan.second, plan.weights, order,
                                                 plan.wave_size);
        };
        EXPECT_TRUE(keep_blocks());
        order.lane = plan.first.acc.col; // the lanes before they have traded words
        EXPECT_EQ(keep_blocks(), swaps == 0);
    }
}

} // namespace
} // namespace fmha::hip_target
