// Tables cannot be wrong silently: one entry changes, and the difference of the lists names it.

#include "tests/catalog/audit_helpers.hpp"

#include "dispatcher/types/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fmha::catalog::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Request stored(std::string_view arch = "gfx950") {
    return request_for(RuleSet::stored, arch);
}

/// The sweep cut down to one small variant, so that whole lists can be compared.
Request sweep(std::string_view config, std::string_view arch = "gfx950") {
    Request request = request_for(RuleSet::sweep, arch);
    request.sweep = parse_sweep_config(config, "test", SweepUse::sweep);
    return request;
}
constexpr auto smallest_forward = R"({"trait_config": {"data_type": {"values": ["fp8fp32"]}}})";

TEST(TableMutation, DroppedForwardTile) {
    const auto change = change_of(
        stored(),
        with_change(
            "tables/rules/forward_cdna.json",
            R"({"data_types": ["fp16", "bf16"], "head": [80, 96], "tiles": [[128, 128, 16, 96, 32, 96]]},)",
            ""));
    EXPECT_THAT(change.gained, IsEmpty());
    // 144 qr and 432 qr_async kernels for each half type.
    EXPECT_THAT(change.lost, SizeIs(2 * 576));
    EXPECT_THAT(change.lost, Each(HasSubstr("_h80x96_")));
    EXPECT_THAT(change.lost, Each(HasSubstr("_t128x128x16x96x32x96_")));
}

TEST(TableMutation, ChangedForwardTile) {
    const auto change =
        change_of(stored("gfx90a"), with_change("tables/rules/forward_cdna.json",
                                                "[128, 128, 16, 96, 32, 96]", "[128, 64, 16, 96, 32, 96]"));
    EXPECT_THAT(change.lost, AllOf(SizeIs(2 * 576), Each(HasSubstr("_t128x128x16x96x32x96_"))));
    EXPECT_THAT(change.gained, AllOf(SizeIs(2 * 576), Each(HasSubstr("_t128x64x16x96x32x96_"))));
}

TEST(TableMutation, RemovedDataTypeOfAnArchitecture) {
    const auto change =
        change_of(stored("gfx90a"), with_change("tables/rules/stored.json", R"("data_types": {})",
                                                R"("data_types": {"pagedkv": ["fp16"]})"));
    EXPECT_THAT(change.gained, IsEmpty());
    EXPECT_THAT(change.lost, AllOf(SizeIs(72), Each(HasSubstr("fmha_fwd_pagedkv_bf16_"))));
}

TEST(TableMutation, SplitKvCombineAppendKvAndPrefillEntries) {
    auto change = change_of(stored(), with_change("tables/rules/variants.json", "[32, 64, 16, 32, 32, 32]",
                                                  "[64, 64, 16, 32, 32, 32]"));
    EXPECT_THAT(change.lost, AllOf(SizeIs(2 * 288), Each(HasSubstr("fwd_splitkv"))));
    EXPECT_THAT(change.gained, SizeIs(2 * 288));
    change = change_of(
        stored(), with_change("tables/rules/variants.json", "[32, 64, 96, 128, 256]", "[32, 64, 96, 128]"));
    EXPECT_THAT(change.lost, AllOf(SizeIs(2 * 12), Each(HasSubstr("_splitkv_combine_"))));
    change =
        change_of(stored(), with_change("tables/rules/variants.json", "[32, 64, 128, 256]", "[32, 64, 128]"));
    EXPECT_THAT(change.lost, AllOf(SizeIs(2 * 12), Each(HasSubstr("_h256_appendkv_"))));
    change =
        change_of(stored(), with_change("tables/rules/variants.json", ", [64, 128, 64, 128, 64, 128]", ""));
    EXPECT_THAT(change.lost, AllOf(SizeIs(2 * 480), Each(HasSubstr("fmha_batch_prefill_"))));
}

TEST(TableMutation, BackwardTilesPadsAndDropouts) {
    auto change = change_of(
        stored(),
        with_change(
            "tables/rules/backward.json",
            R"({"head": [128, 128], "tile": [16, 192, 128, 16, 128, 16, 32, 128, 128], "tag": "bn192", "batch_only": false},)",
            ""));
    EXPECT_THAT(change.lost, AllOf(SizeIs(2 * 288), Each(HasSubstr(".bn192_"))));
    change = change_of(stored(), with_change("tables/rules/backward.json", "[1, 8], ", ""));
    EXPECT_THAT(change.lost, AllOf(SizeIs(2 * 5 * 2 * 72), Each(HasSubstr("_pad1118_"))));
    change = change_of(stored(), with_change("tables/rules/backward.json", R"("small_dropouts": ["no"])",
                                             R"("small_dropouts": ["no", "dropout_wg16"])"));
    EXPECT_THAT(change.lost, IsEmpty());
    EXPECT_THAT(change.gained, AllOf(SizeIs(2 * 2 * 48), Each(HasSubstr("_drv=dropout_wg16"))));
}

TEST(TableMutation, BackwardWavesChangeTheRecordThoughNotTheName) {
    const auto changed = with_change(
        "tables/rules/backward.json",
        R"({"block": [16, 64, 256], "trload": false, "wave": [1, 4, 1, 4, 1, 1, 1, 4, 1], "warp_k1": 16})",
        R"({"block": [16, 64, 256], "trload": false, "wave": [1, 2, 1, 2, 1, 1, 1, 2, 1], "warp_k1": 16})");
    const auto change = change_of(stored(), changed);
    EXPECT_THAT(change.lost, IsEmpty());
    EXPECT_THAT(change.gained, IsEmpty());
    const auto before = list(arch::ArchSet::built_in(), stored());
    const auto after = list(changed, stored());
    ASSERT_EQ(before.size(), after.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < before.size(); ++i)
        if (before[i] != after[i]) {
            ++different;
            EXPECT_EQ(before[i].signature.hdim_q, 256);
        }
    EXPECT_EQ(different, 2U * 2U * 504U);
}

TEST(TableMutation, SweepRangeValue) {
    const auto change = change_of(sweep(smallest_forward), with_change("tables/sweep/tables.json",
                                                                       R"("k0": [16, 32, 64, 96, 128, 256])",
                                                                       R"("k0": [16, 32, 64, 96, 256])"));
    EXPECT_THAT(change.gained, IsEmpty());
    EXPECT_THAT(change.lost, AllOf(SizeIs(108), Each(HasSubstr("_t128x128x128x128x128x128_"))));
}

TEST(TableMutation, SweepWarpTile) {
    const auto change = change_of(
        sweep(smallest_forward),
        with_change("tables/sweep/tables.json",
                    R"({"data_types": ["fp8", "bf8", "fp8bf16", "fp8fp32"], "tiles": [[32, 32, 32]]})",
                    R"({"data_types": ["fp8", "bf8", "fp8bf16", "fp8fp32"], "tiles": [[32, 32, 64]]})"));
    EXPECT_THAT(change.lost, Each(HasSubstr("_w32x32x32_")));
    EXPECT_THAT(change.lost, SizeIs(324));
    EXPECT_THAT(change.gained, AllOf(SizeIs(216), Each(HasSubstr("_w32x32x64_"))));
}

TEST(TableMutation, SweepPaddedHeadAndCombine) {
    auto change =
        change_of(sweep(smallest_forward), with_change("tables/sweep/tables.json", "[128, 128], [160, 256]",
                                                       "[128, 160], [160, 256]"));
    EXPECT_THAT(change.lost, SizeIs(324));
    EXPECT_THAT(change.gained, AllOf(SizeIs(324), Each(HasSubstr("x160_w32x32x32_"))));
}

TEST(TableMutation, SweepLdsLimitAndBanks) {
    const auto change =
        change_of(sweep(smallest_forward),
                  with_change("tables/sweep/tables.json", R"("async": 163840)", R"("async": 40960)"));
    EXPECT_THAT(change.gained, IsEmpty());
    EXPECT_THAT(change.lost, Each(HasSubstr("_qr_async_")));
    EXPECT_FALSE(change.lost.empty());
}

TEST(TableMutation, ArchitectureRule) {
    const Request plain = sweep(R"({"trait_config": {"data_type": {"values": ["fp16"]},
        "pipeline": {"values": ["qr_async"]}, "mask": {"values": ["no"]}, "bias": {"values": ["no"]},
        "mode": {"values": ["batch"]}, "lse": {"values": [false]}, "dropout": {"values": [false]},
        "logits": {"values": [false]}, "sink": {"values": [false]}}})");
    const auto change =
        change_of(plain, with_change("gfx950.json", R"("SWEEP-MFMA", "SWEEP-ASYNC-DMA", "SWEEP-GFX950")",
                                     R"("SWEEP-MFMA", "SWEEP-GFX950")"));
    EXPECT_THAT(change.lost, IsEmpty());
    // 32 x 16 elements are not a whole number of copies of 8 waves x 64 lanes x 8 elements. n0 = 16 does not
    // come: no multiple of the warp tile.
    EXPECT_THAT(change.gained,
                Contains("fmha_fwd_fp16_batch_h32_qr_async_t256x16x16x32x32x32_w32x32x16_pad1011_mask=no_"
                         "bias=no_bpc=-1")
                    .Times(0));
    EXPECT_THAT(change.gained,
                Contains("fmha_fwd_fp16_batch_h32_qr_async_t256x32x16x32x32x32_w32x32x16_pad1011_mask=no_"
                         "bias=no_bpc=-1"));
}

TEST(TableMutation, EntriesThatWouldGiveOneNameTwiceAreRefused) {
    const auto refused = [](const Request& request, const char* path, const char* from, const char* to) {
        try {
            names(with_change(path, from, to), request);
        } catch (const InputError& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    EXPECT_THAT(refused(stored(), "tables/rules/forward_gfx950_stored.json", "[16, 128, 64, 128, 32, 128]",
                        "[256, 32, 128, 128, 32, 128]"),
                HasSubstr("tables/rules/forward_gfx950_stored.json#/forward_tiles/0/tiles/0: expected a tile "
                          "that is not listed yet"));
    EXPECT_THAT(refused(stored(), "tables/rules/backward.json",
                        R"("tile": [32, 128, 96, 32, 96, 32, 32, 96, 96])", R"("tile": [32, 128])"),
                HasSubstr("tables/rules/backward.json"));
    EXPECT_THAT(refused(sweep(smallest_forward), "tables/sweep/tables.json", R"("m0": [16, 32,)",
                        R"("m0": [16, 16,)"),
                HasSubstr("tables/sweep/tables.json"));
}

} // namespace
} // namespace fmha::catalog::test
