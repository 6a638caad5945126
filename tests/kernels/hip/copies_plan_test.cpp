// The meaning of the catalogue's pipelines for the way from global memory to LDS.

#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/targets/hip/block_plan.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "tests/catalog/working_list.hpp"

#include <gtest/gtest.h>

namespace fmha::hip_target {
namespace {

std::vector<KernelConfig> kernels_of(const std::string& arch, KernelFamily family = KernelFamily::fwd) {
    auto kernels = catalog::test::working_list(arch, family);
    std::erase_if(kernels, [](const KernelConfig& config) { return cannot_execute(config).has_value(); });
    return kernels;
}

bool transposing(Pipeline pipeline) {
    return pipeline == Pipeline::qr_async_trload || pipeline == Pipeline::qr_async_trload_v3;
}

/// Two buffers as they are without asynchronous copies, beside the rest of LDS, are more than there is.
bool short_of_lds(const KernelConfig& config) {
    KernelConfig synchronous = config;
    synchronous.algorithm.pipeline = Pipeline::qr;
    return plan_of(synchronous).key.stage == 0;
}

/// Kernels of `qr` that copy as those of `qr_async` do: waves that have their SIMD for themselves on gfx950, those of 16 bits that share it with
/// one other, and on gfx950 with any number.
bool copies_without_waiting(const KernelConfig& config, const BlockPlan& plan) {
    const bool cdna4 = plan.unit == MatrixUnit::cdna4;
    const int taken = plan.first.acc.registers + plan.second.acc.registers + plan.query.words;
    return config.algorithm.pipeline == Pipeline::qr && config.signature.v_layout != VLayout::column &&
           plan.first.scale_block == 0 &&
           (taken >= 256 ? cdna4 : element_bits(plan.key.type) == 16 && (cdna4 || taken > 128));
}

class Cdna : public testing::TestWithParam<const char*> {};

TEST_P(Cdna, CopiesKeysDirectlyInTheAsynchronousPipelines) {
    std::size_t direct = 0, columns = 0, lacking = 0, others = 0, rings = 0;
    const auto kernels = kernels_of(GetParam());
    for (const KernelConfig& config : kernels) {
        const BlockPlan plan = plan_of(config);
        const Pipeline pipeline = config.algorithm.pipeline;
        const bool column = config.signature.v_layout == VLayout::column;
        const bool as_others = copies_without_waiting(config, plan);
        others += as_others ? 1 : 0;
        if (!as_others && pipeline != Pipeline::qr_async && !transposing(pipeline)) {
            EXPECT_EQ(plan.staging.async, AsyncCopies::none);
            continue;
        }
        if (plan.staging.async == AsyncCopies::none) {
            EXPECT_TRUE(short_of_lds(config));
            ++lacking;
            continue;
        }
        ++direct;
        EXPECT_EQ(plan.staging.async, AsyncCopies::steps);
        EXPECT_EQ(plan.key.copy_words, plan.unit == MatrixUnit::cdna4 ? 4 : 1);
        EXPECT_GT(plan.key.stage, 0) << "two buffers";
        EXPECT_LE(plan.staging.buffers * plan.key.stage, 65536) << "m0 has 16 bits";
        if (plan.staging.buffers > 2) {
            ++rings;
            EXPECT_EQ((plan.key.steps() + plan.value.steps()) % plan.staging.buffers, 0);
            EXPECT_GT(plan.key.copies(plan.threads), 0) << "waits count them";
            EXPECT_GT(plan.value.copies(plan.threads), 0);
        }
        columns += column ? 1 : 0;
        // Threads go round in whole lines of a power of two.
        const int channels = config.algorithm.tile.n1;
        const bool whole_lines = (channels & (channels - 1)) == 0;
        const bool reads_transposed = !column && plan.unit == MatrixUnit::cdna4 && whole_lines;
        EXPECT_EQ(plan.value.copy_words > 0, column || reads_transposed);
        EXPECT_EQ(plan.value.reads_transposed, reads_transposed);
    }
    EXPECT_GT(direct, 0U);
    const bool large = std::string_view(GetParam()) == "gfx950"; // 160 KB
    EXPECT_GT(others, 0U);
    EXPECT_EQ(rings > 0, large);
    EXPECT_EQ(columns > 0, std::string_view(GetParam()) != "gfx90a") << "V by column is of 8 bits";
    // 8 bits, 256 channels, block scales and random bytes on 64 KB.
    EXPECT_EQ(lacking, std::string_view(GetParam()) == "gfx942" ? 320U : 0U) << "of " << kernels.size();
}

TEST_P(Cdna, LeavesRoomForAnotherBlockOfBatchPrefill) {
    std::size_t shared = 0, ahead = 0;
    for (const KernelConfig& config : kernels_of(GetParam(), KernelFamily::batch_prefill)) {
        const BlockPlan plan = plan_of(config);
        const bool by_token = config.signature.qscale == QScale::per_token_head;
        EXPECT_EQ(plan.staging.descale_slots, by_token ? config.algorithm.tile.n0 : 0);
        ahead += by_token ? 1 : 0;
        if (config.algorithm.tile.m0 > 64 || planning::has_simd_alone(plan)) continue;
        EXPECT_LE(2 * plan.lds_bytes, lds_limit(plan.unit));
        ++shared;
    }
    EXPECT_GT(shared, 0U);
    EXPECT_EQ(ahead > 0, std::string_view(GetParam()) != "gfx90a") << "which has no 8 bits";
}

INSTANTIATE_TEST_SUITE_P(Architectures, Cdna, testing::Values("gfx90a", "gfx942", "gfx950"),
                         [](const auto& arch) { return std::string(arch.param); });

TEST(Rdna, CopiesThroughRegisters) {
    for (const char* arch : {"gfx1100", "gfx1151", "gfx1201"})
        for (const KernelConfig& config : kernels_of(arch))
            EXPECT_EQ(plan_of(config).staging.async, AsyncCopies::none);
}

TEST(Nvidia, CopiesWholeTiles) {
    for (const KernelConfig& config : kernels_of("sm_90"))
        EXPECT_EQ(plan_of(config).staging.async,
                  config.algorithm.pipeline == Pipeline::qr_async ? AsyncCopies::tiles : AsyncCopies::none);
}

// Where keys of a fragment lie in a line of V, and which key a place is for.
TEST(Places, AreReversible) {
    for (const KernelConfig& config : kernels_of("gfx942")) {
        if (config.signature.v_layout != VLayout::column) continue;
        const DepthOrder order = plan_of(config).value.order;
        EXPECT_FALSE(order.natural);
        for (int key = 0; key < config.algorithm.tile.k1; ++key)
            ASSERT_EQ(order.at_place(order.place_of(key)), key);
    }
}

} // namespace
} // namespace fmha::hip_target
