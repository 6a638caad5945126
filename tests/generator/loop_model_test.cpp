// The model of the loop over keys, on hand-made loops whose numbers are counted by hand.

#include "dispatcher/types/error.hpp"
#include "kernels/generator/flow_graph.hpp"
#include "kernels/generator/loop_model.hpp"
#include "kernels/generator/loop_report.hpp"
#include "kernels/generator/unit_rates.hpp"
#include "tests/generator/listing_text.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace fmha::generator {
namespace {

using built::LoopIteration;
using built::LoopUnit;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Instruction> amd_code(const std::string& code) {
    return amd_listing(amd_text(code), "k").at("fmha_k");
}
std::vector<Instruction> nvidia_code(const std::string& code) {
    return nvidia_listing(nvidia_text(code), "k").at("fmha_k");
}

std::vector<std::string> mnemonics(std::span<const Instruction> path) {
    std::vector<std::string> names;
    for (const Instruction& instruction : path) names.push_back(instruction.mnemonic);
    return names;
}

/// A loop as kernels have it: a first tile ahead of it, copies of the next tile but in the last iteration, aligned or by element,
/// a mask for some tiles, and a factor where maxima rise.
constexpr const char* cdna_loop = R"(
    v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], 0
  loop:
    s_cbranch_scc1 1 -> last
    s_cbranch_vccz 1 -> gather
    buffer_load_dwordx4 v20, s[8:11], 0 offen lds
    s_branch 1 -> copied
  gather:
    global_load_ushort v30, v[31:32], off
    ds_write_b16 v33, v30
    v_cmp_gt_u32_e32 vcc, 64, v33
    s_cbranch_vccnz 1 -> gather
  copied:
    s_nop 1
  last:
    ds_read_b128 v[24:27], v28
    s_waitcnt lgkmcnt(0)
    v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]
    s_cbranch_vccnz 1 -> seen
    v_cmp_gt_i32_e64 s[2:3], v40, v41
    v_cndmask_b32_e64 v0, v42, v0, s[2:3]
    v_cndmask_b32_e64 v1, v42, v1, s[2:3]
  seen:
    v_pk_fma_f32 v[0:1], v[0:1], v[2:3], v[4:5]
    v_exp_f32_e32 v0, v0
    v_mov_b32_e32 v7, v0
    v_mad_u64_u32 v[8:9], s[2:3], v2, v3, v[4:5]
    s_cbranch_vccz 1 -> settled
    v_mul_f32_e32 v0, v0, v1
    v_mul_f32_e32 v1, v1, v1
  settled:
    v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]
    s_waitcnt vmcnt(0)
    s_barrier
    s_add_i32 s1, s1, 1
    s_cbranch_scc0 1 -> loop
    s_endpgm
)";

TEST(LoopPaths, ThePlainOneStartsCopiesAndHasNeitherMaskNorFactor) {
    const auto paths = loop_paths(amd_code(cdna_loop), "gfx942", "k");
    EXPECT_THAT(mnemonics(paths.plain),
                ElementsAre("s_cbranch_scc1", "s_cbranch_vccz", "buffer_load_dwordx4", "s_branch", "s_nop",
                            "ds_read_b128", "s_waitcnt", "v_mfma_f32_32x32x8_f16", "s_cbranch_vccnz",
                            "v_pk_fma_f32", "v_exp_f32_e32", "v_mov_b32_e32", "v_mad_u64_u32",
                            "s_cbranch_vccz", "v_mfma_f32_32x32x8_f16", "s_waitcnt", "s_barrier", "s_add_i32",
                            "s_cbranch_scc0"));
}

TEST(LoopPaths, TheMaskedOneSelectsForEveryScore) {
    const auto paths = loop_paths(amd_code(cdna_loop), "gfx942", "k");
    EXPECT_EQ(iteration_of(paths.plain, "gfx942").selects, 0);
    EXPECT_EQ(iteration_of(paths.masked, "gfx942").selects, 2);
    EXPECT_EQ(iteration_of(paths.masked, "gfx942")[LoopUnit::vector].instructions, 6);
}

TEST(LoopPaths, OfTwoLoopsTheOneWithoutPredicatesIsPlain) {
    const auto paths = loop_paths(amd_code(R"(
  plain:
    v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]
    v_add_f32_e32 v1, v2, v3
    s_cbranch_scc0 1 -> plain
  masked:
    v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]
    v_cndmask_b32_e64 v0, v42, v0, s[2:3]
    v_add_f32_e32 v1, v2, v3
    s_cbranch_scc0 1 -> masked
    s_endpgm)"),
                                  "gfx942", "k");
    EXPECT_EQ(iteration_of(paths.plain, "gfx942").selects, 0);
    EXPECT_EQ(iteration_of(paths.masked, "gfx942").selects, 1);
}

TEST(LoopPaths, OfNestedLoopsTheInnermostWithProductsCounts) {
    const auto paths = loop_paths(amd_code(R"(
  items:
    s_load_dwordx2 s[0:1], s[2:3], 0x0
  keys:
    v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]
    s_cbranch_scc0 1 -> keys
    global_store_short v[0:1], v2, off
    s_cbranch_scc1 1 -> items
    s_endpgm)"),
                                  "gfx942", "k");
    EXPECT_THAT(mnemonics(paths.plain), ElementsAre("v_mfma_f32_32x32x8_f16", "s_cbranch_scc0"));
}

TEST(LoopPaths, WithoutProductsThereIsNone) {
    EXPECT_THAT(
        [] {
            loop_paths(amd_code("loop:\n v_add_f32_e32 v0, v1, v2\n s_cbranch_scc0 1 -> loop\n s_endpgm"),
                       "gfx942", "k");
        },
        testing::ThrowsMessage<InputError>("k: no loop holds a matrix instruction"));
}

TEST(Listings, ThatLackATargetAreRefused) {
    EXPECT_THAT([] { amd_listing("0000000000001700 <k>:\n\ts_branch 4 // 000000001700: BF820000\n", "k"); },
                testing::ThrowsMessage<InputError>("k: s_branch at 1700 has no target"));
    auto code = amd_code("loop:\n s_nop 0\n s_branch 1 -> loop");
    code.back().target = 0x9000;
    EXPECT_THAT([&] { blocks_of(code, "k"); },
                testing::ThrowsMessage<InputError>(HasSubstr("to 9000, where no instruction begins")));
}

TEST(LoopIteration, OfCdnaIsCountedByUnit) {
    const auto paths = loop_paths(amd_code(cdna_loop), "gfx942", "k");
    const LoopIteration plain = iteration_of(paths.plain, "gfx942");
    EXPECT_EQ(plain[LoopUnit::matrix], (built::UnitLoad{2, 64}));
    // fma, mov and mad; a slot of 4 for each product, 16 for exp.
    EXPECT_EQ(plain[LoopUnit::vector], (built::UnitLoad{3, 4 + 4 + 16 + 2 * 4 + 16}));
    EXPECT_EQ(plain.matrix_slots, 2 * 4);
    EXPECT_EQ(plain.access_slots, 2 * 4);
    EXPECT_EQ(plain[LoopUnit::transcendental], (built::UnitLoad{1, 16}));
    EXPECT_EQ(plain[LoopUnit::lds], (built::UnitLoad{1, 16 * 64 * 4 / 128}));
    EXPECT_EQ(plain[LoopUnit::memory], (built::UnitLoad{1, 16 * 64 * 4 / 64}));
    EXPECT_EQ(plain[LoopUnit::scalar], (built::UnitLoad{1, 4}));
    EXPECT_EQ(plain[LoopUnit::branch], (built::UnitLoad{6, 96}));
    EXPECT_EQ(plain[LoopUnit::wait], (built::UnitLoad{4, 2 * 4 + 3 * 4}));
    EXPECT_EQ(plain.lds_bytes, 16);
    EXPECT_EQ(plain.memory_bytes, 16);
    EXPECT_EQ(plain.moves, 1);
    EXPECT_EQ(plain.wide_integers, 1);
    EXPECT_EQ(plain.products, 2 * 2 * 32 * 32 * 8);
    // Issued in 48 + 4 + 96 + 20 + 8 cycles.
    EXPECT_DOUBLE_EQ(built::busy_alone(plain), 64.0 / (64.0 + 176.0 - 8.0));
    EXPECT_DOUBLE_EQ(built::busy_together(plain, 1), 64.0 / 176.0);
    EXPECT_DOUBLE_EQ(built::busy_together(plain, 8), 64.0 / 96.0) << "branches are the bound";
}

TEST(LoopIteration, WaitsKnowWhatTheyWaitFor) {
    const auto paths = loop_paths(amd_code(R"(
  loop:
    buffer_load_dwordx4 v[0:3], v4, s[8:11], 0 offen
    buffer_load_dwordx4 v[8:11], v4, s[8:11], 0 offen offset:16
    ds_read_b64 v[4:5], v6
    v_mfma_f32_32x32x8_f16 v[16:31], v[0:1], v[2:3], v[16:31]
    v_mfma_f32_32x32x8_f16 v[16:31], v[0:1], v[2:3], v[16:31]
    s_waitcnt lgkmcnt(0)
    s_waitcnt vmcnt(1)
    s_waitcnt vmcnt(1)
    s_cbranch_scc0 1 -> loop
    s_endpgm)"),
                                  "gfx942", "k");
    const LoopIteration plain = iteration_of(paths.plain, "gfx942");
    // LDS: 4 cycles of its own issue and two products of 32 are 68, enough. Memory: in the second round the older load of this
    // iteration has had 4 + 4 + 64 + 4 cycles and lacks the rest of 500; the third wait waits for nothing.
    EXPECT_EQ(plain.waits, 2);
    EXPECT_EQ(plain.early_waits, 1);
    EXPECT_EQ(plain.missing_cycles, 500 - (4 + 4 + 4 + 64 + 4));
    // Alone, a wave waits until that load has arrived; two waits of 4 cycles and a branch of 16 follow.
    EXPECT_EQ(plain.wave_cycles, 500 + 4 + 4 + 16);
    EXPECT_DOUBLE_EQ(built::busy_waiting(plain, 1), 64.0 / 524.0);
    EXPECT_DOUBLE_EQ(built::busy_waiting(plain, 4), 64.0 / 131.0);
    EXPECT_DOUBLE_EQ(built::busy_waiting(plain, 8), built::busy_together(plain, 8))
        << "enough to fill the waits";
}

struct Arch {
    std::string name;
    std::string matrix;
    std::int64_t matrix_cycles = 0, products = 0, vector_cycles = 0;
};

class Rates : public testing::TestWithParam<Arch> {};

TEST_P(Rates, OfTheMatrixUnit) {
    const auto& [name, matrix, cycles, products, vector] = GetParam();
    const auto code = fmt::format(
        "loop:\n {} v[0:15], v[16:17], v[18:19], v[0:15]\n v_add_f32_e32 v1, v2, v3\n s_cbranch_scc0 "
        "1 -> loop\n s_endpgm",
        matrix);
    const LoopIteration plain =
        iteration_of(loop_paths(amd_code(code), ArchName(name), "k").plain, ArchName(name));
    EXPECT_EQ(plain[LoopUnit::matrix].cycles, cycles);
    EXPECT_EQ(plain.products, 2 * products);
    EXPECT_EQ(plain[LoopUnit::vector].cycles, vector);
}

// Cycles by AMD's matrix instruction calculator and by LLVM's scheduling model. On RDNA the vector unit multiplies.
INSTANTIATE_TEST_SUITE_P(Archs, Rates,
                         testing::Values(Arch{"gfx90a", "v_mfma_f32_32x32x8f16", 64, 8192, 8},
                                         Arch{"gfx90a", "v_mfma_f32_16x16x16bf16_1k", 32, 4096, 8},
                                         Arch{"gfx90a", "v_mfma_f32_32x32x2f32", 64, 2048, 8},
                                         Arch{"gfx942", "v_mfma_f32_32x32x8_bf16", 32, 8192, 8},
                                         Arch{"gfx942", "v_mfma_f32_16x16x16_f16", 16, 4096, 8},
                                         Arch{"gfx942", "v_mfma_f32_32x32x16_fp8_fp8", 32, 16384, 8},
                                         Arch{"gfx90a", "v_mfma_f32_32x32x8bf16_1k", 64, 8192, 8},
                                         Arch{"gfx90a", "v_mfma_f32_16x16x16f16", 32, 4096, 8},
                                         Arch{"gfx90a", "v_mfma_f32_16x16x4f32", 32, 1024, 8},
                                         Arch{"gfx942", "v_mfma_f32_16x16x32_bf8_bf8", 16, 8192, 8},
                                         Arch{"gfx942", "v_mfma_f32_32x32x2_f32", 64, 2048, 8},
                                         Arch{"gfx950", "v_mfma_f32_32x32x8_f16", 32, 8192, 8},
                                         Arch{"gfx950", "v_mfma_f32_32x32x8_bf16", 32, 8192, 8},
                                         Arch{"gfx950", "v_mfma_f32_16x16x16_f16", 16, 4096, 8},
                                         Arch{"gfx950", "v_mfma_f32_16x16x16_bf16", 16, 4096, 8},
                                         Arch{"gfx950", "v_mfma_f32_32x32x16_bf16", 32, 16384, 8},
                                         Arch{"gfx950", "v_mfma_f32_16x16x32_f16", 16, 8192, 8},
                                         Arch{"gfx950", "v_mfma_f32_32x32x16_fp8_fp8", 32, 16384, 8},
                                         Arch{"gfx950", "v_mfma_f32_16x16x32_bf8_bf8", 16, 8192, 8},
                                         Arch{"gfx950", "v_mfma_f32_16x16x4_f32", 32, 1024, 8},
                                         Arch{"gfx950", "v_mfma_scale_f32_16x16x128_f8f6f4", 32, 32768, 8},
                                         Arch{"gfx950", "v_mfma_f32_32x32x64_f8f6f4", 64, 65536, 8},
                                         Arch{"gfx950", "v_mfma_scale_f32_32x32x64_f8f6f4", 64, 65536, 8},
                                         Arch{"gfx1100", "v_wmma_f32_16x16x16_bf16", 32, 4096, 33},
                                         Arch{"gfx1151", "v_wmma_f32_16x16x16_f16", 32, 4096, 33},
                                         Arch{"gfx1201", "v_wmma_f32_16x16x16_f16", 16, 4096, 17},
                                         Arch{"gfx1201", "v_wmma_f32_16x16x16_fp8_fp8", 8, 4096, 9}),
                         [](const auto& parameter) {
                             return fmt::format("{}_{}", parameter.param.name, parameter.param.matrix);
                         });

TEST(Rates, OfAnUnknownArchitectureAreRefused) {
    EXPECT_THROW(rates_of("gfx1"), InputError);
}

TEST(LoopIteration, OfRdnaHasShortWavesAndItsOwnWaits) {
    const LoopIteration plain = iteration_of(loop_paths(amd_code(R"(
  loop:
    ds_load_b128 v[0:3], v4
    s_wait_dscnt 0x0
    s_delay_alu instid0(VALU_DEP_1)
    v_exp_f32_e32 v5, v6
    v_dual_mul_f32 v1, v2, v3 :: v_dual_add_f32 v4, v5, v6
    v_wmma_f32_16x16x16_f16 v[8:15], v[0:3], v[4:7], v[8:15]
    s_cbranch_scc0 1 -> loop
    s_endpgm)"),
                                                        "gfx1201", "k")
                                                 .plain,
                                             "gfx1201");
    EXPECT_EQ(plain[LoopUnit::lds].cycles, 16 * 32 * 2 / 128);
    EXPECT_EQ(plain[LoopUnit::transcendental].cycles, 4);
    EXPECT_EQ(plain[LoopUnit::vector].cycles, 1 + 1 + 16);
    EXPECT_EQ(plain.waits, 1);
    EXPECT_EQ(plain.missing_cycles, 63);
}

TEST(LoopIteration, WithAWaitForNoNumberIsRefused) {
    for (const char* wait : {"s_wait_dscnt", "s_wait_loadcnt", "s_wait_loadcnt_dscnt"}) {
        const auto code =
            amd_code(fmt::format("  loop:\n    {} two\n"
                                 "    v_wmma_f32_16x16x16_f16 v[8:15], v[0:3], v[4:7], v[8:15]\n"
                                 "    s_cbranch_scc0 1 -> loop\n    s_endpgm",
                                 wait));
        EXPECT_THROW(iteration_of(loop_paths(code, "gfx1201", "k").plain, "gfx1201"), InputError) << wait;
    }
}

TEST(LoopIteration, OfHopperIsReadFromCuobjdump) {
    const auto code = nvidia_code(R"(
    LDC R1, c[0x0][0x28]
  loop:
    LDSM.16.M88.4 R4, [R8+0x1000]
    HMMA.16816.F32.BF16 R12, R4, R6, R12
    @!P0 BRA -> seen
    FSEL R12, R12, -INF , P1
  seen:
    FFMA R12, R12, R2, -R3
    MUFU.EX2 R12, R12
    LDGSTS.E.BYPASS.128 [R20], desc[UR4][R22.64]
    IMAD.WIDE R22, R24, 0x2, R22
    @P2 BRA -> loop
    EXIT
  self:
    BRA -> self)");
    const LoopPaths paths = loop_paths(code, "sm_90", "k");
    const LoopIteration plain = iteration_of(paths.plain, "sm_90");
    EXPECT_EQ(plain[LoopUnit::matrix], (built::UnitLoad{1, 7}));
    EXPECT_EQ(plain.products, 2 * 16 * 8 * 16);
    EXPECT_EQ(plain[LoopUnit::transcendental], (built::UnitLoad{1, 8}));
    EXPECT_EQ(plain[LoopUnit::vector], (built::UnitLoad{2, 1 + 2 + 2}));
    EXPECT_EQ(plain[LoopUnit::lds], (built::UnitLoad{1, 16}));
    EXPECT_EQ(plain[LoopUnit::memory], (built::UnitLoad{1, 32}));
    EXPECT_EQ(plain.wide_integers, 1);
    EXPECT_EQ(plain.selects, 0);
    EXPECT_EQ(iteration_of(paths.masked, "sm_90").selects, 1);
}

TEST(LoopIteration, OfHopperWaitsForScoreboards) {
    const auto with = [](std::uint64_t stall, std::uint64_t sets, std::uint64_t waits) {
        return fmt::format(" ! {:016x}", upper_half(stall, sets, waits));
    };
    constexpr std::uint64_t none = 7;
    const auto code =
        nvidia_code("  loop:\n    LDS R4, [R8]" + with(1, 0, 0) + "\n    FFMA R5, R6, R7, R5" +
                    with(4, none, 0) + "\n    HMMA.16816.F32.BF16 R12, R4, R6, R12" + with(2, none, 1) +
                    "\n    MUFU.EX2 R13, R5" + with(1, 2, 0) + "\n    FADD R14, R13, R5" + with(4, none, 4) +
                    "\n    @P0 BRA" + with(5, none, 0) + " -> loop\n    EXIT");
    EXPECT_EQ(code[0].scoreboards.written, 0);
    EXPECT_EQ(code[0].scoreboards.read, -1);
    EXPECT_EQ(code[1].scoreboards.stall, 4);
    EXPECT_EQ(code[4].scoreboards.waits, 4);
    const LoopIteration plain = iteration_of(loop_paths(code, "sm_90", "k").plain, "sm_90");
    // The product waits 30 cycles for LDS, and two cycles behind it begins exp2, whose result comes 20 later.
    EXPECT_EQ(plain.wave_cycles, 30 + 2 + 20 + 4 + 5);
}

TEST(LoopIteration, OfHopperWaitsForGroupsOfCopies) {
    const auto cycles = [](const std::string& left) {
        return iteration_of(
                   loop_paths(nvidia_code("  loop:\n    LDGSTS.E.BYPASS.128 [R20], desc[UR4][R22.64]\n"
                                          "    LDGDEPBAR\n    DEPBAR.LE SB0, " +
                                          left +
                                          "\n    HMMA.16816.F32.BF16 R12, R4, R6, R12\n"
                                          "    @P0 BRA -> loop\n    EXIT"),
                              "sm_90", "k")
                       .plain,
                   "sm_90")
            .wave_cycles;
    };
    EXPECT_GT(cycles("0x0"), 500) << "the group that was begun just before";
    EXPECT_NEAR(static_cast<double>(cycles("0x1")), 250, 10) << "the one of the iteration before it";
}

KernelConfig small_tile() {
    KernelConfig config;
    config.arch = "gfx942";
    config.signature.data_type = DataType::fp16;
    config.signature.hdim_q = config.signature.hdim_v = 32;
    config.algorithm.pipeline = Pipeline::qr;
    config.algorithm.tile = {128, 64, 16, 32, 32, 32};
    config.algorithm.wave = {4, 1, 1, 4, 1, 1};
    config.algorithm.warp = {32, 32, 16, 32, 32, 16};
    return config;
}

TEST(LoopModel, HasTheProductsOfATile) {
    // A wave of four multiplies 32 rows, 64 keys and 32 channels twice: 16 instructions of 32 × 32 × 8.
    std::string code = "loop:\n";
    for (int i = 0; i < 16; ++i) code += " v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]\n";
    const std::string end = " v_add_f32_e32 v1, v2, v3\n s_cbranch_scc0 1 -> loop\n s_endpgm";
    const auto whole = loop_paths(amd_code(code + end), "gfx942", "k");
    const built::LoopModel model = loop_model(whole, small_tile(), 2);
    EXPECT_EQ(model.scores, 128 * 64 / 256);
    EXPECT_EQ(model.waves, 2);
    EXPECT_DOUBLE_EQ(built::vector_a_score(model, model.plain), 1.0 / 32.0);

    const auto more =
        loop_paths(amd_code(code + " v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]\n" + end),
                   "gfx942", "k");
    EXPECT_THAT(
        [&] { loop_model(more, small_tile(), 2); },
        testing::ThrowsMessage<InputError>(HasSubstr("multiplies 139264 times, a tile needs 131072")));
}

TEST(LoopReport, HasARowForEveryKindAndATableForEveryKernel) {
    built::Manifest manifest;
    EXPECT_EQ(loop_page(manifest), "");
    manifest.objects.push_back({"o", "gfx942", "c", "k", {}});
    for (const std::int64_t vector : {320, 640}) {
        built::Resources used;
        built::LoopModel loop{.scores = 32, .waves = 2, .second_opinion = 77};
        loop.plain[LoopUnit::matrix] = {16, 512};
        loop.plain[LoopUnit::vector] = {vector, vector * 4};
        used.loop = loop;
        manifest.objects.front().kernels.push_back({fmt::format("k{}", vector), small_tile(), "s", used});
    }
    const auto rows = loop_rows(manifest);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].what, "gfx942 fwd fp16 h32x32 qr t128x64");
    EXPECT_EQ(rows[0].kernels, 2U);
    EXPECT_DOUBLE_EQ(rows[0].fewest_a_score, 10.0);
    EXPECT_DOUBLE_EQ(rows[0].most_a_score, 20.0);
    EXPECT_DOUBLE_EQ(rows[0].least_busy, 0.2);
    EXPECT_DOUBLE_EQ(rows[0].most_busy, 0.4);
    const std::string page = loop_page(manifest);
    EXPECT_THAT(page, HasSubstr("## k320\n\n32 scores a lane, 2 waves a SIMD"));
    EXPECT_THAT(page, HasSubstr("llvm-mca: 77"));
    EXPECT_THAT(page, HasSubstr("| plain | 20.0 | 16 / 512 | 640 / 2560 |"));
}

} // namespace
} // namespace fmha::generator
