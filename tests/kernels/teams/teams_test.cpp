// Warp-specialised forward: the same program by the host's one team and by emulated teams and their feed, in every schedule,
// has to agree with the reference within the bounds of its roundings.

#include "judge.hpp"
#include "kernels/programs/ws_items.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/hip/ws_plan.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "team_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace fmha::hip_target::test {
namespace {

struct Variant {
    const char* name;
    int teams, keys, channels;
    DataType type;
    void (*change)(Shape&);
};

const Variant variants[] = {
    {"plain", 2, 128, 64, DataType::bf16, [](Shape&) {}},
    {"three teams, causal, query heads in groups", 3, 64, 64, DataType::fp16,
     [](Shape& s) {
         s.nhead_q = 4;
         s.nhead_k = 2;
         s.mask = {MaskType::top_left, -1, 0, 0};
     }},
    {"176 keys, window and sink tokens", 2, 176, 128, DataType::bf16,
     [](Shape& s) {
         s.seqlen_q = {400};
         s.seqlen_k = {700};
         s.mask = {MaskType::top_left, 100, 0, 4};
     }},
    {"80 keys, 256 channels, soft cap, sink logits", 2, 80, 256, DataType::fp16,
     [](Shape& s) {
         s.soft_cap = 2.0F;
         s.sink_logit = true;
     }},
    {"96 channels, elementwise bias", 2, 64, 96, DataType::bf16,
     [](Shape& s) { s.bias = BiasType::elementwise; }},
    {"ALiBi, one tile of keys", 2, 128, 64, DataType::fp16,
     [](Shape& s) {
         s.bias = BiasType::alibi;
         s.seqlen_k = {77};
     }},
    {"head dimensions below those of the tile, one query", 2, 64, 128, DataType::bf16,
     [](Shape& s) {
         s.hdim_q = 40;
         s.hdim_v = 71;
         s.padding = 9;
         s.hdim_q = 79;
         s.seqlen_q = {1};
     }},
    {"maps that end with the slots of three entries, causal", 2, 64, 64, DataType::bf16,
     [](Shape& s) {
         s.batch = 3;
         s.extra = 0;
         s.seqlen_q = {70};
         s.seqlen_k = {130};
         s.mask = {MaskType::top_left, -1, 0, 0};
     }},
    {"maps that end with the sequences of three entries", 2, 64, 64, DataType::fp16,
     [](Shape& s) {
         s.batch = 3;
         s.seqlen_q = {70, 3, 64};
         s.seqlen_k = {130, 1, 64};
     }},
    {"groups, causal from the bottom right, no keys for one entry", 2, 64, 64, DataType::fp16,
     [](Shape& s) {
         s.group = true;
         s.batch = 3;
         s.seqlen_q = {33, 70, 5};
         s.seqlen_k = {97, 0, 64};
         s.mask = {MaskType::bottom_right, -1, 0, 0};
     }},
};

Shape shape_of(const Variant& variant) {
    Shape shape = team_shape(variant.type, variant.channels);
    variant.change(shape);
    return shape;
}
KernelConfig kernel_of(const FwdProblem& problem, const Variant& variant) {
    return team_kernel(problem, variant.teams, variant.keys, variant.channels);
}

class EverySchedule : public testing::TestWithParam<int> {};

TEST_P(EverySchedule, AgreesWithTheReference) {
    for (const Variant& variant : variants) {
        FwdProblem problem(shape_of(variant));
        const KernelConfig kernel = kernel_of(problem, variant);
        emulate_kernel(kernel, problem.args(), {.threads = 1, .schedule = static_cast<Schedule>(GetParam())});
        const auto distance = judge(problem, numerics_of(kernel));
        EXPECT_TRUE(distance.acceptable()) << variant.name << ": O " << distance.o << ", LSE " << distance.lse
                                           << ", RMS " << distance.rms << ", " << distance.worst;
    }
}
INSTANTIATE_TEST_SUITE_P(Teams, EverySchedule, testing::Range(0, schedules));

TEST(OneTeam, AgreesWithTheReferenceOnTheHost) {
    for (const Variant& variant : variants) {
        FwdProblem problem(shape_of(variant));
        const KernelConfig kernel = kernel_of(problem, variant);
        host_target::run_kernel(kernel, problem.args());
        const auto distance = host_target::test::judge(problem, kernel);
        EXPECT_TRUE(distance.acceptable()) << variant.name << ": O " << distance.o << ", LSE " << distance.lse
                                           << ", RMS " << distance.rms << ", " << distance.worst;
    }
}

TEST(TeamPlan, FitsTheRegistersAndTheLdsOfAMultiprocessor) {
    for (const Variant& variant : variants) {
        const FwdProblem problem(shape_of(variant));
        const WsPlan plan = ws_plan_of(kernel_of(problem, variant));
        ASSERT_EQ(plan.problem, PlanProblem::none) << variant.name;
        EXPECT_LE(128 * (plan.feed_registers + plan.teams * plan.team_registers), 65536) << variant.name;
        EXPECT_EQ(plan.feed_registers % 8 + plan.team_registers % 8, 0) << variant.name;
        for (const StreamPlan* stream : {&plan.queries, &plan.keys, &plan.values})
            for (int stage = 0; stage < stream->stages; ++stage)
                EXPECT_EQ(stream->stage(stage) % 1024, 0) << variant.name;
        EXPECT_LE(plan.lds_bytes, 232448) << variant.name;
    }
}

TEST(TeamPlan, RefusesWhatItHasNoInstructionFor) {
    const FwdProblem problem(team_shape(DataType::bf16, 128)), other(team_shape(DataType::fp32, 128));
    EXPECT_EQ(cannot_execute(team_kernel(problem, 2, 128, 128)), std::nullopt);
    EXPECT_NE(cannot_execute(team_kernel(problem, 2, 120, 128)), std::nullopt);
    EXPECT_NE(cannot_execute(team_kernel(problem, 4, 128, 128)), std::nullopt);
    EXPECT_NE(cannot_execute(team_kernel(other, 2, 128, 128)), std::nullopt);
    const auto reason = cannot_execute(team_kernel(problem, 2, 256, 256));
    ASSERT_NE(reason, std::nullopt);
    EXPECT_NE(reason->find("bytes of LDS"), std::string::npos) << *reason;
}

/// A launch that has only extents.
FwdArgs extents(std::int64_t batch, std::int64_t heads, std::int64_t seqlen, std::int64_t hdim) {
    FwdArgs args;
    args.shape = {.mode = Mode::batch,
                  .batch = batch,
                  .nhead_q = heads,
                  .nhead_k = heads / 2,
                  .seqlen_q = seqlen,
                  .seqlen_k = seqlen,
                  .max_seqlen_q = seqlen,
                  .min_seqlen_q = 0,
                  .hdim_q = hdim,
                  .hdim_v = hdim};
    return args;
}
KernelConfig masked(MaskClass mask) {
    const FwdProblem problem(team_shape(DataType::bf16, 128));
    KernelConfig kernel = team_kernel(problem, 2, 128, 128);
    kernel.signature.mask = mask;
    return kernel;
}

TEST(Items, AreEachComputedByOneBlock) {
    for (const MaskClass mask : {MaskClass::none, MaskClass::causal})
        for (const auto& [batch, heads, seqlen] :
             {std::array<std::int64_t, 3>{3, 6, 700}, {1, 2, 100}, {40, 32, 300}, {2, 4, 5000}})
            for (const std::uint32_t blocks : {1U, 7U, 132U}) {
                const KernelConfig kernel = masked(mask);
                const FwdArgs args = extents(batch, heads, seqlen, 128);
                const std::int64_t q_tiles = (seqlen + 127) / 128;
                std::vector<int> seen(static_cast<std::size_t>(batch * heads * q_tiles));
                for (std::uint32_t block = 0; block < blocks; ++block) {
                    const kernels::BlockItems items{kernel, args, block, blocks};
                    for (std::uint32_t n = 0; items.exists(n); ++n) {
                        const kernels::FwdItem item = items[n];
                        ASSERT_TRUE(item.b < batch && item.h < heads && item.q_tile < q_tiles);
                        ASSERT_EQ(item.v_tile, 0);
                        ++seen[static_cast<std::size_t>((item.b * heads + item.h) * q_tiles + item.q_tile)];
                    }
                }
                EXPECT_EQ(std::ranges::count(seen, 1), std::ssize(seen)) << seqlen << " by " << blocks;
            }
}

TEST(Items, AreSeveralABlockWhereBlocksEndTogether) {
    const auto blocks = [](MaskClass mask, const FwdArgs& args) {
        return kernels::WsGrid(masked(mask), args).blocks(132);
    };
    EXPECT_EQ(blocks(MaskClass::none, extents(8, 16, 2048, 128)), 132);
    EXPECT_EQ(blocks(MaskClass::none, extents(1, 2, 256, 128)), 4);
    EXPECT_EQ(blocks(MaskClass::causal, extents(32, 16, 512, 128)), 132);
    // 128 tiles a head, and lengths that nobody knows
    EXPECT_EQ(blocks(MaskClass::causal, extents(1, 16, 16384, 128)), 2048);
    FwdArgs packed = extents(8, 16, 2048, 128);
    packed.shape.mode = Mode::group;
    EXPECT_EQ(blocks(MaskClass::none, packed), 2048);
}

// PTX ISA, matrix descriptor: address, leading and stride offsets in units of 16 bytes, the swizzle in the highest bits.
TEST(Descriptor, HasTheBitsOfTheManual) {
    EXPECT_EQ(MatrixDescriptor::of(0x1400, 16, 1024).bits, 0x4000'0040'0001'0140U);
    EXPECT_EQ((MatrixDescriptor::of(0x1400, 16, 1024) + 32).bits, 0x4000'0040'0001'0142U);
    EXPECT_EQ(MatrixDescriptor::of(0, 16384, 1024).leading(), 16384);
    EXPECT_EQ(SwizzledTile::swizzled(128), 128 + 16);
    EXPECT_EQ(SwizzledTile::swizzled(7 * 128 + 16), 7 * 128 + 96);
    EXPECT_EQ(SwizzledTile::swizzled(8 * 128), 8 * 128);
}

} // namespace
} // namespace fmha::hip_target::test
