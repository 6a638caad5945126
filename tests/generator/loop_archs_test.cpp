// Hand-made loops of each architecture, counted by hand, and the numbers read from llvm-mca.

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/process.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/generator/loop_model.hpp"
#include "kernels/generator/second_opinion.hpp"
#include "kernels/targets/hip/block_shape.hpp"
#include "tests/generator/listing_text.hpp"

#include <gmock/gmock.h>

namespace fmha::generator {
namespace {

using built::LoopUnit;
using built::UnitLoad;

std::vector<Instruction> lines_of(const std::string& code) {
    return amd_listing(amd_text(code), "k").at("fmha_k");
}

struct Counted {
    std::string arch, code;
    UnitLoad matrix, vector, transcendental, lds, memory, branch;
    std::int64_t waits = 0, missing = 0;
};

class Loops : public testing::TestWithParam<Counted> {};

TEST_P(Loops, AreCountedByUnit) {
    const Counted& is = GetParam();
    const auto plain = iteration_of(
        loop_paths(lines_of("  loop:\n" + is.code + "    s_cbranch_scc0 1 -> loop\n    s_endpgm"),
                   ArchName(is.arch), "k")
            .plain,
        ArchName(is.arch));
    EXPECT_EQ(plain[LoopUnit::matrix], is.matrix);
    EXPECT_EQ(plain[LoopUnit::vector], is.vector);
    EXPECT_EQ(plain[LoopUnit::transcendental], is.transcendental);
    EXPECT_EQ(plain[LoopUnit::lds], is.lds);
    EXPECT_EQ(plain[LoopUnit::memory], is.memory);
    EXPECT_EQ(plain[LoopUnit::branch], is.branch);
    EXPECT_EQ(plain.waits, is.waits);
    EXPECT_EQ(plain.missing_cycles, is.missing);
}

// Vector cycles are those of its instructions, of exp2 where it has no unit of its own, and a slot of each product.
INSTANTIATE_TEST_SUITE_P(
    Archs, Loops,
    testing::Values(Counted{"gfx90a",
                            "    ds_read_b64 v[4:5], v6\n"
                            "    s_waitcnt lgkmcnt(0)\n"
                            "    v_mfma_f32_32x32x8f16 v[16:31], v[0:1], v[2:3], v[16:31]\n"
                            "    v_pk_fma_f32 v[0:1], v[0:1], v[2:3], v[4:5]\n"
                            "    v_exp_f32_e32 v0, v0\n",
                            {1, 64},
                            {1, 4 + 4 + 16},
                            {1, 16},
                            {1, 8 * 64 * 4 / 128},
                            {},
                            {1, 16},
                            1,
                            60},
                    Counted{"gfx950",
                            "    ds_read_b64_tr_b16 v[4:5], v6\n"
                            "    s_waitcnt lgkmcnt(0)\n"
                            "    v_mfma_f32_32x32x16_bf16 v[16:31], v[0:3], v[4:7], v[16:31]\n"
                            "    v_permlane32_swap_b32_e32 v0, v1\n"
                            "    v_exp_f32_e32 v0, v0\n",
                            {1, 32},
                            {1, 4 + 4 + 8},
                            {1, 8},
                            {1, 8 * 64 * 4 / 256},
                            {},
                            {1, 16},
                            1,
                            60},
                    Counted{"gfx1100",
                            "    ds_load_b128 v[0:3], v4\n"
                            "    s_waitcnt lgkmcnt(0)\n"
                            "    v_wmma_f32_16x16x16_f16 v[8:15], v[0:7], v[16:23], v[8:15]\n"
                            "    v_dual_mul_f32 v1, v2, v3 :: v_dual_add_f32 v4, v5, v6\n"
                            "    v_exp_f32_e32 v5, v6\n",
                            {1, 32},
                            {1, 32 + 1 + 1},
                            {1, 4},
                            {1, 16 * 32 * 2 / 128},
                            {},
                            {1, 4},
                            1,
                            63},
                    Counted{"gfx1151",
                            "    global_load_b128 v[0:3], v[4:5], off\n"
                            "    s_waitcnt vmcnt(0)\n"
                            "    v_wmma_f32_16x16x16_bf16 v[8:15], v[0:7], v[16:23], v[8:15]\n"
                            "    v_add_f32_e32 v1, v2, v3\n",
                            {1, 32},
                            {1, 32 + 1},
                            {},
                            {},
                            {1, 16 * 32 * 2 / 64},
                            {1, 4},
                            1,
                            499}),
    [](const auto& parameter) { return parameter.param.arch; });

TEST(Backward, HasTheFiveProductsOfATileOfBackward) {
    KernelConfig config;
    config.arch = "gfx942";
    config.signature.family = KernelFamily::bwd_dq_dk_dv;
    config.signature.data_type = DataType::fp16;
    config.signature.hdim_q = config.signature.hdim_v = 32;
    config.algorithm.pipeline = Pipeline::bwd;
    config.algorithm.tile = {32, 128, 32, 32, 32, 32, 64, 32, 32};
    config.algorithm.wave = {1, 4, 1, 4, 1, 1, 2, 2, 1};
    config.algorithm.warp = {16, 16, 32, 16, 16, 16, 16, 16, 32};
    ASSERT_EQ(hip_target::block_shape(config).waves, 4);
    // A wave of four multiplies 32 rows, 32 keys and 32 channels five times: 8 instructions of 16 × 16 × 16 each.
    std::string code = "  loop:\n";
    for (int i = 0; i < 5 * 8; ++i)
        code += "    v_mfma_f32_16x16x16_f16 v[0:3], v[16:17], v[18:19], v[0:3]\n";
    const std::string end = "    s_cbranch_scc0 1 -> loop\n    s_endpgm";
    EXPECT_EQ(loop_model(loop_paths(lines_of(code + end), "gfx942", "k"), config, 2).scores, 32 * 128 / 256);
    const auto more =
        loop_paths(lines_of(code + "    v_mfma_f32_16x16x16_f16 v[0:3], v[16:17], v[18:19], v[0:3]\n" + end),
                   "gfx942", "k");
    EXPECT_THAT([&] { loop_model(more, config, 2); },
                testing::ThrowsMessage<InputError>(
                    testing::HasSubstr("the loop over rows multiplies 167936 times, a tile needs 163840")));
}

TEST(Backward, OfWavesWithTheSameScoresHasTheProductsOfEach) {
    KernelConfig config;
    config.arch = "gfx1201";
    config.signature.family = KernelFamily::bwd_dq_dk_dv;
    config.signature.data_type = DataType::fp16;
    config.signature.hdim_q = config.signature.hdim_v = 128;
    config.algorithm.pipeline = Pipeline::bwd;
    config.algorithm.tile = {16, 64, 128, 16, 128, 16, 32, 128, 128};
    config.algorithm.wave = {1, 4, 1, 4, 2, 1, 1, 8, 1};
    config.algorithm.warp = {16, 16, 16, 16, 16, 16, 16, 16, 16};
    ASSERT_EQ(hip_target::block_shape(config).waves, 8);
    // A wave has 16 rows and 16 keys of S and of dP over all 128 channels, which a second one has too, half of their channels of dK and
    // dV, and 16 channels of dQ over 64 keys.
    const auto loop = [](int products) {
        std::string code = "  loop:\n";
        for (int i = 0; i < products; ++i)
            code += "    v_wmma_f32_16x16x16_f16 v[0:7], v[16:19], v[20:23], v[0:7]\n";
        return loop_paths(lines_of(code + "    s_cbranch_scc0 1 -> loop\n    s_endpgm"), "gfx1201", "k");
    };
    EXPECT_EQ(loop_model(loop(8 + 8 + 4 + 4 + 4), config, 2).scores, 16 * 64 / 4 / 32);
    EXPECT_THAT([&] { loop_model(loop(5 * 4), config, 2); },
                testing::ThrowsMessage<InputError>(
                    testing::HasSubstr("the loop over rows multiplies 81920 times, a tile needs 114688")));
}

/// A program in llvm-mca's place, which keeps its input and says `answer`.
class Analyzer : public testing::Test {
  protected:
    std::int64_t opinion(const std::string& answer, const ArchName& arch = "gfx942",
                         const std::string& code = "    v_exp_f32_e32 v0, v1\n") {
        system::write_file(program(), "#!/bin/sh\nfor last; do :; done\ncp \"$last\" \"" + seen().string() +
                                          "\"\n" + answer + "\n");
        std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
        return second_opinion(
            lines_of("  loop:\n" + code + "    s_barrier\n    s_cbranch_scc0 1 -> loop\n    s_endpgm"), arch,
            program());
    }
    std::filesystem::path program() const { return folder_.path() / "llvm-mca"; }
    std::filesystem::path seen() const { return folder_.path() / "seen.s"; }

  private:
    system::TemporaryDirectory folder_;
};

TEST_F(Analyzer, IsAskedForFourIterationsWithoutBranchesAndBarriers) {
    EXPECT_EQ(opinion("echo 'Iterations:        4'; echo 'Total Cycles:      123'; echo 'Total uOps: 9'"),
              123)
        << "passes of four cycles, of four iterations";
    EXPECT_EQ(system::read_file(seen()), "v_exp_f32_e32 v0, v1\n");
}

TEST_F(Analyzer, IsAskedForOneResultAnInstruction) {
    opinion("echo 'Total Cycles:      123'", "gfx942",
            "    v_mad_u64_u32 v[106:107], s[12:13], v99, s20, v[98:99]\n"
            "    v_add_co_u32_e32 v1, vcc, v2, v3\n"
            "    v_addc_co_u32_e64 v4, vcc, v5, v6, vcc\n"
            "    ds_read_b128 v[66:69], v142 offset:14080\n");
    EXPECT_EQ(system::read_file(seen()), "v_mul_lo_u32 v106, v99, s20\n"
                                         "v_add_u32_e32 v1, v2, v3\n"
                                         "v_add_u32_e64 v4, v5, v6\n"
                                         "ds_read_b128 v[66:69], v142 offset:14080\n")
        << "LLVM 22 waits for ever behind some instructions with two results";
}

TEST_F(Analyzer, ThatFailsOrSaysNothingHasNoOpinion) {
    EXPECT_EQ(opinion("echo 'Total Cycles:      123'; exit 1"), 0);
    EXPECT_EQ(opinion("echo 'Iterations: 4'"), 0);
    EXPECT_EQ(opinion("echo 'Total Cycles:     '"), 0);
}

TEST_F(Analyzer, IsNotAskedWhereItHasNoModel) {
    EXPECT_EQ(opinion("echo 'Total Cycles:      123'", "gfx1100"), 0);
    EXPECT_FALSE(std::filesystem::exists(seen()));
}

} // namespace
} // namespace fmha::generator
