// `sweep` and its exhaustive mode: counts that follow by hand from ranges, rules and products.

#include "tests/catalog/audit_helpers.hpp"

#include "kernels/catalog/sweep/tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

namespace fmha::catalog::test {
namespace {

using enum KernelFamily;

FamilySet families(std::initializer_list<KernelFamily> list) {
    FamilySet set = FamilySet::none();
    for (const KernelFamily family : list) set.add(family);
    return set;
}

const std::array<FamilySet, 6>& variant_families() {
    static const std::array<FamilySet, 6> sets{
        families({fwd}),           families({fwd_splitkv, fwd_splitkv_combine}),
        families({fwd_pagedkv}),   families({fwd_appendkv}),
        families({batch_prefill}), families({bwd_dot_do_o, bwd_dq_dk_dv, bwd_convert_dq})};
    return sets;
}

std::array<std::size_t, 6> variant_counts(Request request) {
    std::array<std::size_t, 6> counts{};
    for (std::size_t i = 0; i < counts.size(); ++i) {
        request.families = variant_families()[i];
        counts[i] = count(request);
    }
    return counts;
}

TEST(Sweep, CountsByArchitecture) {
    const std::map<std::string, std::array<std::size_t, 6>> expected{
        {"gfx90a", {1038720, 607992, 227952, 216, 1013120, 12192}},
        {"gfx942", {1109676, 632028, 263952, 224, 1055120, 12192}},
        {"gfx950", {901020, 632028, 263952, 224, 1055120, 12192}},
        {"gfx1100", {1338048, 607992, 227952, 216, 1013120, 12192}},
        {"gfx1201", {1391400, 620010, 245952, 220, 1055120, 12192}}};
    for (const auto& [arch, counts] : expected)
        EXPECT_EQ(variant_counts(request_for(RuleSet::sweep, arch)), counts) << arch;
}

TEST(Sweep, TotalOfGfx950) {
    const std::size_t half_forward = 861 * 144 + 465 * 432 + 91 * 960 + (201 + 224) * 24 + 48 * 8;
    const std::size_t forward = 2 * half_forward + 3 * (56 + 3 + 43 + 68) * 108 + 3 * 108;
    const std::size_t splitkv = 2 * 1583 * 192 + 2 * 500 * 24 + 2 * 5 * 12 + 2 * 3 * 6;
    const std::size_t pagedkv = 2 * 1583 * 72 + 2 * 500 * 36;
    const std::size_t prefill = 2 * 1583 * 320 + 500 * 84;
    EXPECT_EQ(count(request_for(RuleSet::sweep, "gfx950")),
              forward + splitkv + pagedkv + (2 * 9 * 12 + 2 * 4) + prefill + 12192);
}

TEST(Sweep, ForwardSplitKvAndPagedKvByProfile) {
    const std::map<std::string, std::array<std::size_t, 3>> expected{
        {"1", {1396956, 632028, 263952}},  {"2", {144168, 228108, 85482}},
        {"3", {901020, 632028, 263952}},   {"4", {255408, 228108, 113976}},
        {"100", {863976, 632028, 227952}}, {"200", {863976, 608028, 227952}},
        {"600", {863976, 608028, 227952}}, {"800", {207648, 156, 0}},
        {"801", {901020, 156, 263952}},    {"888", {18684, 632028, 0}},
        {"7", {901020, 632028, 263952}}};
    for (const auto& [profile, counts] : expected)
        for (std::size_t i = 0; i < counts.size(); ++i) {
            Request request = request_for(RuleSet::sweep, "gfx950", profile);
            request.families = variant_families()[i];
            EXPECT_EQ(count(request), counts[i]) << profile;
        }
}

TEST(Sweep, ExhaustiveMode) {
    Request request = request_for(RuleSet::sweep, "gfx950", "800");
    request.exhaustive = true;
    EXPECT_EQ(variant_counts(request),
              (std::array<std::size_t, 6>{4870080, 239724, 119862, 224, 1055120, 368832}));
    request.families = FamilySet::of(bwd_dq_dk_dv);
    // 1,707 block tiles under two warp classes give one name each; both half types, 108 feature points.
    EXPECT_EQ(count(request), 2U * 1707U * 108U);
}

TEST(Sweep, ExhaustiveNamesSpellWhatNoKernelHas) {
    Request request = request_for(RuleSet::sweep, "gfx950");
    request.exhaustive = true;
    request.families = FamilySet::of(bwd_dq_dk_dv);
    std::size_t bottom_right = 0, p = 0, rp = 0, longest = 0, generic = 0;
    std::string name;
    enumerate(arch::ArchSet::built_in(), request, [&](const KernelConfig& config) {
        name.clear();
        append_name(request.rules, config, name);
        bottom_right += name.find("_mask=bottom_right_") != std::string::npos;
        generic += name.find("_mask=generic_") != std::string::npos;
        p += name.find("_drv=p_") != std::string::npos;
        rp += name.find("_drv=rp_") != std::string::npos;
        longest = std::max(longest, name.size());
    });
    const std::size_t all = 2U * 1707U * 108U;
    EXPECT_EQ(bottom_right, all / 3);
    EXPECT_EQ(generic, 0U);
    EXPECT_EQ(p, all / 3);
    EXPECT_EQ(rp, all / 3);
    EXPECT_LT(longest, 200U);
}

/// Different hashes prove different names, so equal counts of names and hashes prove that no name is twice.
std::size_t distinct_names(const Request& request) {
    std::vector<std::size_t> hashes;
    std::string name;
    enumerate(arch::ArchSet::built_in(), request, [&](const KernelConfig& config) {
        name.clear();
        append_name(request.rules, config, name);
        hashes.push_back(std::hash<std::string>()(name));
    });
    std::ranges::sort(hashes);
    return static_cast<std::size_t>(std::unique(hashes.begin(), hashes.end()) - hashes.begin());
}

TEST(Sweep, NoNameTwiceSoThatNothingNeedsToBeRemembered) {
    EXPECT_EQ(distinct_names(request_for(RuleSet::sweep, "gfx950", "1")), 3360472U);
    Request request = request_for(RuleSet::sweep, "gfx950");
    request.exhaustive = true;
    request.families = FamilySet::of(bwd_dq_dk_dv);
    EXPECT_EQ(distinct_names(request), count(request));
}

TEST(Sweep, FirstAndLastNames) {
    Request request = request_for(RuleSet::sweep, "gfx950");
    const auto ends = [&](KernelFamily family) {
        request.families = FamilySet::of(family);
        std::pair<std::string, KernelConfig> first_and_last;
        enumerate(arch::ArchSet::built_in(), request, [&](const KernelConfig& config) {
            if (first_and_last.first.empty()) first_and_last.first = name_of(request.rules, config);
            first_and_last.second = config;
        });
        return std::pair(first_and_last.first, name_of(request.rules, first_and_last.second));
    };
    EXPECT_EQ(ends(fwd_splitkv).first,
              "fmha_fwd_splitkv_bf16_batch_h32_qr_t16x16x16x32x32x32_w16x16x16_pad0100_mask=no_"
              "bias=no_lse=1_logits=1_sink=1_pkv=1_bpc=-1");
    EXPECT_EQ(ends(fwd_splitkv_combine).second, "fmha_fwd_splitkv_combine_fp8_group_h256_splitkv_combine_"
                                                "t32x256x32x32x32x128_w32x32x16_pad1110_mask=no_"
                                                "bias=no_bpc=-1");
    EXPECT_EQ(ends(fwd_appendkv).first,
              "fmha_fwd_appendkv_bf16_batch_h32_appendkv_t64x64x32x32x32x128_w32x32x16_"
              "pad0100_mask=no_bias=no_pkv=1_bpc=-1");
    EXPECT_EQ(ends(batch_prefill).second,
              "fmha_batch_prefill_fp8bf16_group_h256_qr_async_t256x384x96x256x32x256_"
              "w32x32x32_pad1111_mask=generic_bias=no_qs=kv_blockscale_pkv=1_ps=1024_kvl="
              "linear_bpc=-1");
}

TEST(SweepTiles, CountsOfTheSmallestForwardTables) {
    using namespace audit;
    const auto tiles = [](const char* arch, DataType type, HeadDims head, Pipeline pipeline) {
        return forward_sweep_tiles(read_sweep_tables(arch::ArchSet::built_in(), arch), type, head, pipeline,
                                   TileChecks::rules, false)
            .size();
    };
    // n0 = m0 = 128 leaves k0 in {16, 32, 64, 128} for the first warp tile, {32, 64, 128} for the second.
    EXPECT_EQ(tiles("gfx950", DataType::fp16, {128, 128}, Pipeline::qr_async), 7U);
    EXPECT_EQ(tiles("gfx950", DataType::fp8, {128, 128}, Pipeline::qr_async), 3U);
    EXPECT_EQ(tiles("gfx950", DataType::fp16, {80, 96}, Pipeline::qr), 28U);
    EXPECT_EQ(tiles("gfx950", DataType::fp16, {80, 96}, Pipeline::qr_async), 11U);
    EXPECT_EQ(tiles("gfx942", DataType::fp16, {80, 96}, Pipeline::qr_async), 22U);
    EXPECT_EQ(tiles("gfx1100", DataType::fp16, {256, 256}, Pipeline::qr), 174U);
    EXPECT_EQ(tiles("gfx942", DataType::fp16, {256, 256}, Pipeline::qr), 91U);
    EXPECT_EQ(tiles("gfx950", DataType::fp16, {64, 64}, Pipeline::qr_async_trload), 201U);
    EXPECT_EQ(tiles("gfx950", DataType::fp16, {128, 128}, Pipeline::qr_async_trload_v3), 48U);
}

TEST(SweepTiles, ArchitectureWithoutFileKeepsItsNameInRules) {
    using namespace audit;
    const auto archs = arch::ArchSet::built_in();
    // gfx908 starts like the CDNA ones and gets their DMA rule; gfx1030 does not.
    EXPECT_TRUE(read_sweep_tables(archs, "gfx908").applies(AuditRule::sweep_async_dma));
    EXPECT_FALSE(read_sweep_tables(archs, "gfx1030").applies(AuditRule::sweep_async_dma));
    EXPECT_EQ(read_sweep_tables(archs, "gfx1030").data_types, read_sweep_tables(archs, "gfx950").data_types);
    EXPECT_EQ(count(request_for(RuleSet::sweep, "gfx908"), fwd),
              count(request_for(RuleSet::sweep, "gfx942"), fwd));
}

} // namespace
} // namespace fmha::catalog::test
