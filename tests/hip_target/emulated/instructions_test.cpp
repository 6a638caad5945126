// Every matrix instruction, in a whole forward kernel: a covering set of small cases runs lane by lane and passes
// the gates that a device's results have to pass.

#include "kernels/targets/hip/block_plan.hpp"
#include "tests/hip_target/emulated/emulated_kernels.hpp"

#include <gtest/gtest.h>

#include <set>

namespace fmha::hip_target::test {
namespace {

using harness::Case;

struct Variant {
    const char* name;
    void (*change)(Case&);
};

// Each feature is in at least one variant; together they are few, because emulation is slow.
const std::vector<Variant>& variants() {
    static const std::vector<Variant> list{
        {"unpadded memory, whole units of 16 bytes", [](Case& c) { c.stride_padding = 0; }},
        {"causal, elementwise bias, dropout, random bytes",
         [](Case& c) {
             c.mask = MaskType::top_left;
             c.window_right = 0;
             c.bias = BiasType::elementwise;
             c.p_drop = 0.2;
             c.dropout_seed = 7;
             c.dropout_offset = 1000003;
             c.store_randval = true;
         }},
        {"window, soft cap, no LSE",
         [](Case& c) {
             c.mask = MaskType::bottom_right;
             c.window_left = 40;
             c.window_right = 9;
             c.logits_soft_cap = 2.0;
             c.lse = false;
         }},
        {"ALiBi, sink logits, query heads in groups",
         [](Case& c) {
             c.bias = BiasType::alibi;
             c.bias_rank = 1;
             c.sink_logits = harness::SinkLogits::normal;
             c.nhead_q = 4;
             c.nhead_k = 2;
             c.fill = harness::Fill::indexed;
         }},
        {"sink tokens",
         [](Case& c) {
             c.mask = MaskType::top_left;
             c.window_left = 24;
             c.window_right = 0;
             c.sink_size = 4;
         }},
        {"group mode, lengths within allocations, causal from the bottom right",
         [](Case& c) {
             c.mode = Mode::group;
             c.seqlen_q = {33, 70};
             c.seqlen_k = {97, 64};
             c.physical_q = {40, 96};
             c.physical_k = {128, 80};
             c.length_form_q = harness::LengthForm::seqlen;
             c.length_form_k = harness::LengthForm::cu_seqlen;
             c.mask = MaskType::bottom_right;
             c.window_right = 0;
         }},
        {"odd head dimensions, one query, sequences outermost",
         [](Case& c) {
             c.hdim_q = 40;
             c.hdim_v = 72;
             c.seqlen_q = {1};
             c.seqlen_k = {199};
             c.iperm = c.operm = harness::Layout::bshd;
             c.fill = harness::Fill::indexed;
         }},
        {"the last visible key wins, bit for bit",
         [](Case& c) {
             c.fill = harness::Fill::edge_last;
             c.mask = MaskType::bottom_right;
             c.window_right = 0;
         }},
        {"V by column", [](Case& c) { c.v_layout = VLayout::column; }},
        {"no keys for one entry",
         [](Case& c) {
             c.mode = Mode::group;
             c.seqlen_q = {70, 20};
             c.seqlen_k = {0, 130};
         }},
    };
    return list;
}

const std::vector<NamedKernel>& kernels() {
    static const std::vector<NamedKernel> chosen = kernel_of_every_instruction();
    return chosen;
}

/// Keys of packed fp4 lie in whole bytes (T-2).
void make_even(Case& c) {
    for (std::int64_t& length : c.seqlen_k) length += length % 2;
}

class EveryInstruction : public testing::TestWithParam<NamedKernel> {};

TEST_P(EveryInstruction, PassesTheGatesWithEveryFeature) {
    const KernelConfig& kernel = GetParam().config;
    const FittingKernel source(kernel);
    for (const Variant& variant : variants()) {
        Case c = plain_case(kernel);
        variant.change(c);
        if (c.data_type == DataType::mxfp4) make_even(c);
        const auto result = result_of(c, kernel, source);
        EXPECT_EQ(result.outcome, harness::Outcome::passed) << variant.name << ": " << result.message;
    }
}

class Fp8Instruction : public testing::TestWithParam<NamedKernel> {};

TEST_P(Fp8Instruction, TakesScalesOfBlocks) {
    const KernelConfig& kernel = GetParam().config;
    Case c = plain_case(kernel);
    c.qscale = QScale::blockscale;
    c.seqlen_k = {300};
    const auto result = result_of(c, kernel, FittingKernel(kernel));
    EXPECT_EQ(result.outcome, harness::Outcome::passed) << result.message;
}

/// Block scales come with fp8bf16.
std::vector<NamedKernel> fp8_kernels() {
    std::vector<NamedKernel> chosen = kernels();
    std::erase_if(chosen, [](const NamedKernel& kernel) {
        return plain_case(kernel.config).data_type != DataType::fp8bf16;
    });
    return chosen;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryInstruction, testing::ValuesIn(kernels()),
                         [](const auto& kernel) { return kernel.param.name; });
INSTANTIATE_TEST_SUITE_P(Table, Fp8Instruction, testing::ValuesIn(fp8_kernels()),
                         [](const auto& kernel) { return kernel.param.name; });

TEST(InstructionKernels, AreForEveryInstructionOfTheTable) {
    std::set<MatrixInstruction> covered;
    for (const NamedKernel& kernel : kernels()) {
        const BlockPlan plan = plan_of(kernel.config);
        EXPECT_EQ(plan.first.instruction, plan.second.instruction) << kernel.name;
        EXPECT_TRUE(kernel.name.ends_with(to_string(plan.first.instruction))) << kernel.name;
        covered.insert(plan.first.instruction);
    }
    EXPECT_EQ(covered.size(), static_cast<std::size_t>(matrix_instructions - 1));
}

/// gfx950's 64 rows of 128 channels, whose second triple is CDNA 3's.
KernelConfig half_depth_kernel() {
    return smallest_house_kernel("gfx950", [](const KernelConfig& config) {
        return config.signature.data_type == DataType::bf16 && config.algorithm.warp.m1 == 16 &&
               config.algorithm.warp.k0 == 32 && config.algorithm.warp.k1 == 16 &&
               config.signature.mask == MaskClass::causal;
    });
}

TEST(TriplesOfHalfDepth, BecomeOneInstructionOnCdna4WhereTheStepIsAsDeep) {
    KernelConfig config = half_depth_kernel();
    EXPECT_EQ(config.algorithm.tile.k1, 32);
    EXPECT_EQ(plan_of(config).second.instruction, MatrixInstruction::mfma_16x16x32_bf16);
    EXPECT_EQ(plan_of(config).second.parts, 1);
    config.arch = "gfx942";
    EXPECT_EQ(plan_of(config).second.instruction, MatrixInstruction::mfma_16x16x16_bf16);
    EXPECT_EQ(plan_of(config).first.parts, 2);

    using enum ElementType;
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna4, fp16, 16, 16, 32, 128), 32);
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna4, fp16, 16, 16, 16, 128), 16) << "the step has no more";
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna4, fp16, 16, 16, 48, 96), 16) << "nor whole ones";
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna4, bf16, 32, 8, 32, 128), 16);
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna4, bf16, 32, 16, 32, 128), 16);
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna4, fp32, 16, 16, 32, 128), 16);
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna3, fp16, 16, 16, 32, 128), 16);
    EXPECT_EQ(depth_of_triple(MatrixUnit::nvidia, fp16, 16, 16, 32, 128), 16);
}

TEST(TriplesOfHalfDepth, PassTheGates) {
    const KernelConfig kernel = half_depth_kernel();
    const FittingKernel source(kernel);
    for (const std::size_t variant : {std::size_t{0}, std::size_t{1}, std::size_t{8}}) {
        Case c = plain_case(kernel);
        variants()[variant].change(c);
        const auto result = result_of(c, kernel, source);
        EXPECT_EQ(result.outcome, harness::Outcome::passed)
            << variants()[variant].name << ": " << result.message;
    }
}

/// gfx950's 128 rows of 128 channels and 8 bits, whose triples are CDNA 3's.
KernelConfig narrow_kernel(DataType type, Pipeline pipeline) {
    return smallest_house_kernel("gfx950", [&](const KernelConfig& config) {
        return config.signature.data_type == type && config.algorithm.tile.n1 == 128 &&
               config.algorithm.pipeline == pipeline && config.signature.qscale == QScale::pertensor;
    });
}

TEST(NarrowTriples, BecomeOneWideInstructionOnCdna4WhereTheTileIsAsDeep) {
    KernelConfig config = narrow_kernel(DataType::fp8bf16, Pipeline::qr_async);
    EXPECT_EQ(config.algorithm.tile.k0, 32);
    const BlockPlan plan = plan_of(config);
    for (const ProductPlan* product : {&plan.first, &plan.second}) {
        EXPECT_EQ(product->instruction, MatrixInstruction::mfma_32x32x64_fp8);
        EXPECT_EQ(product->parts, 1);
        EXPECT_EQ(product->step_fragments, 1);
        EXPECT_TRUE(product->joins_steps);
    }
    for (const OperandPlan* operand : {&plan.key, &plan.value}) {
        EXPECT_EQ(operand->step, 64);
        EXPECT_TRUE(operand->joins_steps);
    }
    EXPECT_EQ(plan.staging.buffers, 4) << "the whole tile";
    EXPECT_EQ(plan.first.reads_ahead, 1) << "as long as two others";
    KernelConfig crowded = config;
    crowded.signature.bias = BiasType::elementwise;
    EXPECT_EQ(plan_of(crowded).second.reads_ahead, 1);
    crowded.signature.has_dropout = true;
    EXPECT_EQ(plan_of(crowded).second.reads_ahead, 0) << "the last registers";
    EXPECT_FALSE(plan_of(crowded).staging.keeps_places);
    EXPECT_TRUE(plan.value.reads_transposed) << "without a move";

    const BlockPlan deep = plan_of(narrow_kernel(DataType::fp8bf16, Pipeline::qr_async_trload_v3));
    EXPECT_EQ(deep.first.instruction, MatrixInstruction::mfma_32x32x64_fp8);
    EXPECT_EQ(deep.first.step_fragments, 2) << "its steps are deep enough";
    EXPECT_FALSE(deep.first.joins_steps || deep.key.joins_steps);
    EXPECT_EQ(plan_of(narrow_kernel(DataType::bf8, Pipeline::qr_async)).second.instruction,
              MatrixInstruction::mfma_32x32x64_bf8);

    config.arch = "gfx942";
    EXPECT_EQ(plan_of(config).first.instruction, MatrixInstruction::mfma_32x32x16_fp8);

    using enum ElementType;
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna4, fp8_ocp, 32, 32, 32, 128), 64);
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna4, bf8_ocp, 32, 16, 128, 128), 64);
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna4, fp8_ocp, 32, 32, 32, 32), 32) << "the tile has no more";
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna4, fp8_ocp, 32, 32, 96, 192), 32) << "no whole steps";
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna4, fp8_ocp, 16, 32, 32, 128), 32) << "no kernel is so small";
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna4, fp4, 32, 64, 64, 128), 64);
    EXPECT_EQ(depth_of_triple(MatrixUnit::cdna3, fp8_fnuz, 32, 32, 32, 128), 32);
}

TEST(Maxima, LagBehindOnAmdWhereWeightsHaveRoomAndTheOutputIsLarge) {
    const auto plan = [](const std::string& arch, DataType type, int channels) {
        return plan_of(smallest_house_kernel(arch, [&](const KernelConfig& config) {
            return config.signature.data_type == type && config.algorithm.tile.n1 == channels &&
                   config.algorithm.tile.m0 == 128 && config.signature.mask == MaskClass::causal;
        }));
    };
    EXPECT_EQ(plan("gfx942", DataType::fp16, 128).weights.slack, 8.0F);
    EXPECT_EQ(plan("gfx950", DataType::bf16, 128).weights.slack, 8.0F);
    EXPECT_EQ(plan("gfx942", DataType::fp8bf16, 128).weights.slack, 0.0F) << "P is as large as it can be";
    EXPECT_EQ(plan("sm_90", DataType::fp16, 128).weights.slack, 0.0F);
    EXPECT_TRUE(plan("gfx942", DataType::fp16, 128).rows.sums_in_parts);
    EXPECT_FALSE(plan("gfx942", DataType::fp16, 256).rows.sums_in_parts) << "registers are full";
    EXPECT_FALSE(plan("gfx950", DataType::fp16, 128).rows.sums_in_parts);
    const AccumulatorPlan output = plan("gfx942", DataType::fp16, 128).second.acc;
    EXPECT_TRUE(planning::keeps_parts(MatrixUnit::cdna3, output, false));
    EXPECT_FALSE(planning::keeps_parts(MatrixUnit::cdna3, output, true)) << "scores would be there twice";
    EXPECT_FALSE(plan("sm_90", DataType::fp16, 128).rows.sums_in_parts);
}

TEST(Rows, ComputeNumbersAgainWhereRegistersAreFull) {
    const auto again = [](const std::string& arch, int channels, KernelFamily family, BiasType bias) {
        KernelConfig config = smallest_house_kernel(arch, [&](const KernelConfig& c) {
            return c.signature.data_type == DataType::fp16 && c.algorithm.tile.n1 == channels &&
                   c.algorithm.tile.m0 >= 64 && c.algorithm.pipeline == Pipeline::qr;
        });
        config.signature.family = family;
        config.signature.bias = bias;
        return plan_of(config).rows.computes_again;
    };
    const KernelFamily cache = KernelFamily::fwd_pagedkv;
    EXPECT_TRUE(again("gfx1100", 256, cache, BiasType::alibi));
    EXPECT_TRUE(again("gfx1151", 256, cache, BiasType::elementwise));
    EXPECT_FALSE(again("gfx1201", 256, cache, BiasType::elementwise)) << "some registers are left";
    EXPECT_FALSE(again("gfx1100", 256, cache, BiasType::no_bias));
    EXPECT_FALSE(again("gfx1100", 128, cache, BiasType::alibi));
    EXPECT_FALSE(again("gfx1100", 256, KernelFamily::fwd, BiasType::alibi))
        << "places are kept: there are registers";
    EXPECT_FALSE(again("gfx942", 256, cache, BiasType::alibi)) << "vectors wait in accumulation registers";
}

TEST(WavesAlone, ReadAheadWithTheRegistersThatTheyHaveToSpare) {
    const auto plan = [](const std::string& arch, int channels, Pipeline pipeline) {
        return plan_of(smallest_house_kernel(arch, [&](const KernelConfig& config) {
            return config.signature.data_type == DataType::fp16 && config.algorithm.tile.n1 == channels &&
                   config.algorithm.tile.m0 == 128 && config.algorithm.pipeline == pipeline &&
                   config.signature.mask == MaskClass::causal;
        }));
    };
    for (const std::string arch : {"gfx90a", "gfx942", "gfx950"}) {
        SCOPED_TRACE(arch);
        const BlockPlan alone = plan(arch, 256, Pipeline::qr);
        ASSERT_GE(alone.first.acc.registers + alone.second.acc.registers + alone.query.words, 256);
        EXPECT_TRUE(alone.query.parked);
        const bool straight = arch == "gfx950";
        EXPECT_EQ(alone.staging.reads_first, !straight);
        EXPECT_EQ(alone.staging.read_ahead, !straight);
        EXPECT_EQ(alone.staging.async, straight ? AsyncCopies::steps : AsyncCopies::none);
        EXPECT_EQ(alone.staging.buffers, straight ? 4 : 2) << "of 16 KB each";
        for (const ProductPlan* product : {&alone.first, &alone.second}) {
            EXPECT_EQ(product->reads_ahead, arch == "gfx950" ? 2 : 1) << "two products long";
            EXPECT_EQ(product->right_registers, (1 + product->reads_ahead) * product->right_fragment);
        }
        const BlockPlan shared = plan(arch, 64, Pipeline::qr_async);
        EXPECT_FALSE(shared.query.parked);
        EXPECT_EQ(shared.staging.reads_first, !straight) << "of values";
        EXPECT_EQ(shared.first.reads_ahead, 0);
        EXPECT_EQ(shared.first.right_registers, shared.first.right_fragment);
    }
    const BlockPlan rdna = plan("gfx1100", 256, Pipeline::qr);
    EXPECT_FALSE(rdna.query.parked || rdna.staging.reads_first) << "its file has no halves";
    EXPECT_EQ(rdna.second.reads_ahead, 0);
}

TEST(CountedTiles, AreThoseOfAmdWhereRegistersDo) {
    const auto counts = [](const std::string& arch, KernelFamily family, int channels,
                           bool has_bias = false) {
        KernelConfig config = smallest_house_kernel(arch, [&](const KernelConfig& c) {
            return c.signature.data_type == (has_bias ? DataType::fp8 : DataType::fp16) &&
                   c.algorithm.tile.n1 == channels && c.algorithm.tile.m0 >= 64 && !c.signature.has_dropout;
        });
        config.signature.family = family;
        config.signature.bias = has_bias ? BiasType::elementwise : BiasType::no_bias;
        return plan_of(config).staging.counts_tiles;
    };
    const KernelFamily fwd = KernelFamily::fwd, cache = KernelFamily::fwd_splitkv;
    for (const std::string arch : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"}) {
        EXPECT_TRUE(counts(arch, fwd, 256) && counts(arch, cache, 128)) << arch;
        EXPECT_EQ(counts(arch, cache, 256), arch != "gfx1100") << arch << ": no register is left";
    }
    EXPECT_FALSE(counts("sm_90", fwd, 128)) << "its compiler makes slower loops";
    EXPECT_TRUE(counts("gfx942", fwd, 64, true));
    EXPECT_FALSE(counts("gfx1201", fwd, 64, true)) << "all biases of 64 scores would be read at once";
}

TEST(JoinedSteps, ComeWhereLdsKeepsRoomForTheBlocksThatRegistersHold) {
    const auto plan = [](const std::string& arch, DataType type, int channels, auto change) {
        KernelConfig config = smallest_house_kernel(arch, [&](const KernelConfig& c) {
            return c.signature.data_type == type && c.algorithm.tile.n1 == channels &&
                   c.algorithm.tile.m0 == 128;
        });
        config.signature.bias = BiasType::no_bias;
        config.signature.has_dropout = false;
        change(config.signature);
        const BlockPlan joined = plan_of(config);
        EXPECT_EQ(joined.key.joins_steps, joined.key.step > config.algorithm.tile.k0);
        EXPECT_EQ(joined.value.joins_steps, joined.value.step > config.algorithm.tile.k1);
        const bool scaled = joined.first.scale_block != 0;
        for (const OperandPlan* operand : {&joined.key, &joined.value})
            EXPECT_EQ(operand->scale_blocks, scaled ? operand->step / 32 : 0);
        return joined;
    };
    const auto plain = [](Signature&) {};
    const BlockPlan two_blocks = plan("gfx942", DataType::fp8bf16, 128, plain);
    EXPECT_EQ(two_blocks.key.step, 64);
    EXPECT_EQ(two_blocks.value.step, 64);
    EXPECT_LE(2 * two_blocks.lds_bytes, 65536);
    EXPECT_FALSE(two_blocks.query.parked);
    const BlockPlan alone = plan("gfx942", DataType::fp8bf16, 256, plain);
    EXPECT_EQ(alone.key.step, 128);
    EXPECT_EQ(alone.value.step, 64);
    EXPECT_TRUE(alone.query.parked) << "212 registers are too many for a second wave";
    EXPECT_EQ(plan("gfx942", DataType::fp8bf16, 128, [](Signature& s) { s.has_dropout = true; }).key.step, 32)
        << "random bytes take the room of a second block";
    EXPECT_FALSE(plan("gfx942", DataType::fp16, 128, plain).key.joins_steps);
    EXPECT_EQ(plan("gfx950", DataType::fp8bf16, 128, plain).key.step, 64)
        << "one instruction deep, several under way";
    EXPECT_EQ(plan("gfx950", DataType::mxfp8, 128, plain).value.step, 128);
    EXPECT_EQ(plan("gfx950", DataType::mxfp4, 128, plain).key.step, 128);
    EXPECT_FALSE(plan("gfx950", DataType::mxfp8, 128, [](Signature& s) {
                     s.bias = BiasType::elementwise;
                 }).value.joins_steps);
    EXPECT_FALSE(plan("gfx950", DataType::mxfp8, 256, plain).value.joins_steps);
}

TEST(WavesTogether, ReadAheadOnCdna4WhereTheyHaveTheRegisters) {
    const auto reads_ahead = [](const std::string& arch, int channels, int rows) {
        const BlockPlan plan = plan_of(smallest_house_kernel(arch, [&](const KernelConfig& config) {
            return config.signature.data_type == DataType::fp16 && config.algorithm.tile.n1 == channels &&
                   config.algorithm.tile.m0 == rows && config.algorithm.pipeline == Pipeline::qr_async;
        }));
        EXPECT_EQ(plan.first.reads_ahead, plan.second.reads_ahead);
        EXPECT_EQ(plan.first.right_registers, (1 + plan.first.reads_ahead) * plan.first.right_fragment);
        return plan.first.reads_ahead;
    };
    EXPECT_EQ(reads_ahead("gfx950", 128, 64), 6) << "products of 16 × 16";
    EXPECT_EQ(reads_ahead("gfx950", 128, 128), 2) << "of 32 × 32";
    EXPECT_EQ(reads_ahead("gfx950", 64, 128), 0) << "four waves";
    EXPECT_EQ(reads_ahead("gfx942", 128, 64), 0) << "V goes through registers";
}

} // namespace
} // namespace fmha::hip_target::test
