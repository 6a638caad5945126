// Conflicts of LDS's banks in hand-made loops whose addresses are counted by hand, and the distances of waits.

#include "kernels/generator/bank_conflicts.hpp"
#include "kernels/generator/loop_model.hpp"
#include "kernels/generator/loop_report.hpp"
#include "tests/generator/listing_text.hpp"

#include <gmock/gmock.h>

namespace fmha::generator {
namespace {

using built::LoopIteration;

/// An iteration of a loop with `body`, a product and a branch, behind `before`.
LoopIteration iteration(const std::string& before, const std::string& body, const ArchName& arch = "gfx942") {
    const std::string product = arch.view().starts_with("gfx1")
                                    ? "    v_wmma_f32_16x16x16_f16 v[80:87], v[16:23], v[16:23], v[80:87]\n"
                                    : "    v_mfma_f32_32x32x8_f16 v[80:95], v[16:17], v[18:19], v[80:95]\n";
    const std::string code =
        before + "\n  loop:\n" + body + "\n" + product + "    s_cbranch_scc0 1 -> loop\n    s_endpgm";
    return iteration_of(loop_paths(amd_listing(amd_text(code), "k").at("fmha_k"), arch, "k").plain, arch);
}

struct Access {
    std::string what, arch, before, body;
    std::int64_t followed = 0, cycles = 0; ///< of the wave; all SIMDs that share LDS have as many
};

class BankConflicts : public testing::TestWithParam<Access> {};

TEST_P(BankConflicts, AreThoseOfTheLanesThatAreServedTogether) {
    const Access& is = GetParam();
    const auto found = iteration(is.before, is.body, ArchName(is.arch));
    EXPECT_EQ(found.lds_followed, is.followed);
    const std::int64_t simds = is.arch.starts_with("gfx1") ? 2 : 4;
    EXPECT_EQ(found.conflict_cycles, simds * is.cycles);
}

// 32 banks serve eight lanes of 16 bytes at a time, or 32 of 4; the 64 of CDNA 4 twice as many.
INSTANTIATE_TEST_SUITE_P(
    Hand, BankConflicts,
    testing::Values(
        // Lanes 0, 2, 4 and 6 want bank 0, in each of eight groups.
        Access{"LinesOf64Bytes", "gfx942", "v_lshlrev_b32_e32 v1, 6, v0", "ds_read_b128 v[4:7], v1 offset:32",
               1, 3 * 8},
        Access{"LinesOf64BytesOn64Banks", "gfx950", "v_lshlrev_b32_e32 v1, 6, v0", "ds_read_b128 v[4:7], v1",
               1, 3 * 4},
        Access{"PaddedLines", "gfx942", "v_mul_u32_u24_e32 v1, 0x50, v0", "ds_read_b128 v[4:7], v1", 1, 0},
        Access{"PaddedByAConstant", "gfx942",
               "s_movk_i32 s2, 0x50\n v_mad_u64_u32 v[1:2], s[16:17], v0, s2, v[0:1]\n"
               " v_mad_u32_u24 v1, v0, s2, 16",
               "ds_read_b128 v[4:7], v1", 1, 0},
        // Without the lines' upper bits all lanes have address 0; with them each would have a line of 128 bytes.
        Access{"ProductsOf24Bits", "gfx942",
               "v_lshl_or_b32 v2, v0, 24, v0\n v_mul_u32_u24_e32 v1, 1, v2\n v_lshrrev_b32_e32 v1, 17, v1",
               "ds_read_b32 v4, v1", 1, 0},
        // Units of 16 bytes change places with a bit of the line's number: bank 0 is lane 0's and 4's, bank 4 lane 2's and 6's.
        Access{"Swizzled", "gfx942",
               "v_lshlrev_b32_e32 v1, 6, v0\n v_lshrrev_b32_e32 v2, 1, v0\n v_and_b32_e32 v2, 1, v2\n"
               " v_lshl_or_b32 v2, v2, 4, 0\n v_xor_b32_e32 v1, v1, v2",
               "ds_read_b128 v[4:7], v1", 1, 1 * 8},
        Access{"OneWordForAll", "gfx942", "v_and_b32_e32 v1, 0, v0", "ds_read_b32 v4, v1", 1, 0},
        Access{"OneBankForAll", "gfx942", "v_lshlrev_b32_e32 v1, 7, v0", "ds_write_b32 v1, v4", 1, 31 * 2},
        Access{"BothPartsOfARead", "gfx942", "v_lshlrev_b32_e32 v1, 6, v0",
               "ds_read2_b64 v[4:7], v1 offset1:1", 1, 2 * 7 * 4},
        Access{"LanesOf32", "gfx1100", "v_lshlrev_b32_e32 v1, 7, v0", "ds_load_b32 v4, v1", 1, 31},
        Access{
            "TwoAtOnce", "gfx1100",
            "v_dual_mov_b32 v0, v2 :: v_dual_lshlrev_b32 v1, 7, v0\n v_dual_mov_b32 v2, v1 :: v_dual_mov_b32 "
            "v1, v0",
            "ds_load_b32 v4, v2", 1, 31},
        Access{"Exchanges", "gfx942", "v_lshlrev_b32_e32 v1, 7, v0", "ds_bpermute_b32 v4, v1, v5", 1, 0},
        // A number that lanes share may be unknown and change.
        Access{"StagesByScalars", "gfx942", "v_lshlrev_b32_e32 v1, 6, v0\n s_load_dword s4, s[0:1], 0x0",
               "v_add_u32_e32 v2, s4, v1\n ds_read_b128 v[4:7], v2\n s_add_i32 s4, s4, s5", 1, 3 * 8},
        Access{"StagesByTheLoop", "gfx942", "v_lshlrev_b32_e32 v1, 6, v0",
               "ds_read_b128 v[4:7], v1\n v_add_u32_e32 v1, 0x1000, v1", 1, 3 * 8},
        Access{"KeptElsewhere", "gfx942", "v_lshlrev_b32_e32 v1, 6, v0\n v_accvgpr_write_b32 a3, v1",
               "v_accvgpr_read_b32 v2, a3\n ds_read_b128 v[4:7], v2", 1, 3 * 8},
        // Addresses that do not follow from the code are not counted.
        Access{"FromMemory", "gfx942", "global_load_dword v1, v0, s[0:1]", "ds_read_b128 v[4:7], v1", 0, 0},
        Access{"OfAnotherWay", "gfx942",
               "v_lshlrev_b32_e32 v1, 6, v0\n s_cbranch_scc1 1 -> behind\n v_lshlrev_b32_e32 v1, 4, v0\n "
               "behind:",
               "ds_read_b128 v[4:7], v1", 0, 0},
        Access{"ChangedByTheLoop", "gfx942", "v_lshlrev_b32_e32 v1, 6, v0",
               "ds_read_b128 v[4:7], v1\n v_xor_b32_e32 v1, 16, v1\n v_lshlrev_b32_e32 v1, 1, v1", 0, 0},
        Access{"LogicOfUnknownScalars", "gfx942", "v_lshlrev_b32_e32 v1, 6, v0\n v_or_b32_e32 v1, s7, v1",
               "ds_read_b128 v[4:7], v1", 0, 0},
        Access{"Overwritten", "gfx942", "v_lshlrev_b32_e32 v1, 6, v0",
               "ds_read_b128 v[0:3], v1\n s_waitcnt lgkmcnt(0)", 0, 0}),
    [](const auto& parameter) { return parameter.param.what; });

TEST(BankConflicts, DoNotChangeTheBounds) {
    const auto good = iteration("v_mul_u32_u24_e32 v1, 0x50, v0", "ds_read_b128 v[4:7], v1"),
               bad = iteration("v_lshlrev_b32_e32 v1, 6, v0", "ds_read_b128 v[4:7], v1");
    EXPECT_EQ(good[built::LoopUnit::lds], bad[built::LoopUnit::lds]);
    EXPECT_EQ(built::busy_waiting(good, 2), built::busy_waiting(bad, 2));
}

TEST(Distances, AreThoseToTheNewestAccessThatIsAwaited) {
    const auto found = iteration("", "ds_read_b128 v[4:7], v1\n"
                                     "buffer_load_dwordx4 v[20:23], v1, s[8:11], 0 offen\n"
                                     "v_mfma_f32_32x32x8_f16 v[80:95], v[16:17], v[18:19], v[80:95]\n"
                                     "s_waitcnt lgkmcnt(0)\n"
                                     "s_waitcnt vmcnt(0)\n"
                                     "s_waitcnt vmcnt(0)");
    // LDS: its own issue, that of the load, and a product of 32 cycles. Memory: the load's, the product and a wait. The third waits for nothing.
    EXPECT_EQ(found.behind_lds, (built::Distances{1, 4 + 4 + 32}));
    EXPECT_EQ(found.behind_memory, (built::Distances{1, 4 + 32 + 4}));
    EXPECT_EQ(found.waits, 2);
}

TEST(LoopPage, SaysHowManyConflictsAndHowFarWaitsAre) {
    built::Manifest manifest;
    manifest.objects.push_back({"o", "gfx942", "c", "k", {}});
    built::LoopModel loop{.scores = 32, .waves = 2};
    loop.plain[built::LoopUnit::lds] = {10, 320};
    loop.plain.lds_followed = 9;
    loop.plain.conflict_cycles = 96;
    loop.plain.behind_lds = {4, 260};
    built::Resources used;
    used.loop = loop;
    manifest.objects.front().kernels.push_back({"k", {}, "s", used});
    const std::string page = loop_page(manifest);
    EXPECT_THAT(page, testing::HasSubstr("| LDS bytes | conflicts |"));
    EXPECT_THAT(page, testing::HasSubstr("| 96, 9 of 10 |"));
    EXPECT_THAT(page, testing::HasSubstr("| – | 4 by 65 |"));
}

} // namespace
} // namespace fmha::generator
