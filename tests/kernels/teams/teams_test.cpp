// Warp-specialised forward: the same program by the host's one team and by emulated teams and their feed, in every schedule,
// has to agree with the reference within the bounds of its roundings.

#include "judge.hpp"
#include "kernels/targets/hip/cannot_execute.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/numerics.hpp"
#include "kernels/targets/hip/ws_plan.hpp"
#include "kernels/targets/host/host_target.hpp"
#include "team_agreement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace fmha::hip_target::test {
namespace {

const TeamVariant variants[] = {
    {"plain", 2, 128, 64, DataType::bf16, changes::none},
    {"three teams, causal, query heads in groups", 3, 64, 64, DataType::fp16,
     changes::causal_in_groups_of_heads},
    {"three teams, one without a row", 3, 128, 64, DataType::bf16,
     [](Shape& s) {
         s.batch = 2;
         s.seqlen_q = {300};
     }},
    {"three teams of 128 keys, causal, of which one sees fewer tiles", 3, 128, 64, DataType::fp16,
     [](Shape& s) {
         s.seqlen_q = {290};
         s.mask = {MaskType::top_left, -1, 0, 0};
     }},
    {"three teams of 128 keys under a window, whose first and last tiles one does not see", 3, 128, 64,
     DataType::bf16,
     [](Shape& s) {
         s.seqlen_q = s.seqlen_k = {400};
         s.mask = {MaskType::top_left, 20, 30, 0};
     }},
    {"two teams of 64 keys under a window from the bottom right, groups, one entry without keys", 2, 64, 128,
     DataType::fp16,
     [](Shape& s) {
         s.group = true;
         s.batch = 3;
         s.seqlen_q = {260, 70, 5};
         s.seqlen_k = {270, 0, 64};
         s.mask = {MaskType::bottom_right, 9, 3, 0};
     }},
    {"one team a block, causal", 1, 64, 64, DataType::bf16,
     [](Shape& s) {
         s.seqlen_q = {290};
         s.mask = {MaskType::top_left, -1, 0, 0};
     }},
    {"one team a block, groups, causal from the bottom right, ALiBi", 1, 64, 64, DataType::fp16,
     [](Shape& s) {
         s.group = true;
         s.batch = 3;
         s.bias = BiasType::alibi;
         s.seqlen_q = {133, 70, 64};
         s.seqlen_k = {197, 0, 65};
         s.mask = {MaskType::bottom_right, -1, 0, 0};
     }},
    {"176 keys, window and sink tokens", 2, 176, 128, DataType::bf16, changes::window_and_sink_tokens<700>},
    {"80 keys, 256 channels, soft cap, sink logits", 2, 80, 256, DataType::fp16,
     changes::soft_cap_and_sink_logits},
    {"96 channels, elementwise bias", 2, 64, 96, DataType::bf16, changes::elementwise_bias},
    {"ALiBi, one tile of keys", 2, 128, 64, DataType::fp16, changes::alibi_in_one_tile<77>},
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

KernelConfig kernel_of(const FwdProblem& problem, const TeamVariant& variant) {
    KernelConfig kernel = team_kernel(problem, variant);
    if (variant.teams == 1) kernel.algorithm.block_per_cu = 3;
    return kernel;
}

class EverySchedule : public testing::TestWithParam<int> {};

TEST_P(EverySchedule, AgreesWithTheReference) {
    expect_agreement(variants, GetParam(), shape_of, kernel_of);
}
INSTANTIATE_TEST_SUITE_P(Teams, EverySchedule, testing::Range(0, schedules));

// K and V that are expanded tensors: no copy of them lies in memory for other heads or entries.
TEST_P(EverySchedule, ReadsHeadsAndEntriesThatShareMemory) {
    Shape shape = team_shape(DataType::bf16, 64);
    shape.batch = shape.nhead_k = 2;
    shape.extra = 0;
    FwdProblem problem(shape);
    problem.args().k.head_stride = problem.args().v.head_stride = problem.args().v.batch_stride = 0;
    const KernelConfig kernel = team_kernel(problem, 2, 64, 64);
    emulate_kernel(kernel, problem.args(), {.threads = 1, .schedule = static_cast<Schedule>(GetParam())});
    EXPECT_EQ(judge(problem, numerics_of(kernel)).complaint(true), "");
}

TEST(OneTeam, AgreesWithTheReferenceOnTheHost) {
    expect_agreement_on_host(variants, shape_of, kernel_of);
}

// Maxima of products are those of logits only where the factor between them is above 0.
TEST(Factors, OfEverySignAgreeWithTheReference) {
    for (const float scale : {-0.2F, 0.0F, 0.2F}) {
        FwdProblem problem(team_shape(DataType::bf16, 64));
        problem.args().score.scale_s = scale;
        const KernelConfig kernel = team_kernel(problem, 2, 64, 64);
        for (int schedule = 0; schedule < schedules; ++schedule) {
            emulate_kernel(kernel, problem.args(),
                           {.threads = 1, .schedule = static_cast<Schedule>(schedule)});
            EXPECT_EQ(judge(problem, numerics_of(kernel)).complaint(true), "")
                << scale << ", schedule " << schedule;
            problem.poison_outputs();
        }
        host_target::run_kernel(kernel, problem.args());
        EXPECT_EQ(host_target::test::judge(problem, kernel).complaint(true), "") << scale;
    }
}

TEST(TeamPlan, FitsTheRegistersAndTheLdsOfAMultiprocessor) {
    for (const TeamVariant& variant : variants) {
        const FwdProblem problem(shape_of(variant));
        const WsPlan plan = ws_plan_of(kernel_of(problem, variant));
        ASSERT_EQ(plan.problem, PlanProblem::none) << variant.name;
        // What a block has at entry, which warp groups share out: a team that asked for more would wait for ever.
        const int at_entry = 65536 / (plan.blocks * plan.threads) / 8 * 8 * plan.threads;
        EXPECT_LE(128 * (plan.feed_registers + plan.teams * plan.team_registers), at_entry) << variant.name;
        EXPECT_EQ(plan.feed_registers % 8 + plan.team_registers % 8, 0) << variant.name;
        for (const StreamPlan* stream : {&plan.queries, &plan.keys, &plan.values})
            for (int stage = 0; stage < stream->stages; ++stage)
                EXPECT_EQ(stream->stage(stage) % 1024, 0) << variant.name;
        // Of 228 KB the system takes one a block.
        EXPECT_LE(plan.blocks * (plan.lds_bytes + 1024), 233472) << variant.name;
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

// What a program derives from a mask once for all tiles, against what the mask says of every tile.
TEST(TilesOfATeam, AreThoseThatItsRowsSee) {
    using kernels::KeyTiles;
    using kernels::Mask;
    int plain = 0, unseen = 0, early = 0;
    for (const Mask mask : {Mask{300, 500}, Mask{1, 500}, Mask{-40, 500}, Mask{60, 500}, Mask{1, 100},
                            Mask{30, 1}, Mask{1, 100, 70, 300}, Mask{-200, 500}})
        for (const std::int64_t keys : {1, 64, 257, 300})
            for (const std::int64_t n0 : {64, 80, 128})
                for (const std::int64_t block : {0, 128, 384})
                    for (const std::int64_t row0 : {block, block + 64}) {
                        const KeyTiles tiles = KeyTiles::of(mask, block, 128, keys, n0);
                        const KeyTiles::Range whole =
                            tiles.seen_whole(mask, row0, 64, keys, n0, MaskClass::generic);
                        const int own = tiles.count_until(mask, row0 + 63, n0);
                        const int before = tiles.count_before(mask, row0, n0);
                        ASSERT_LE(own, tiles.count());
                        for (int step = 0; step < tiles.count(); ++step) {
                            const std::int64_t key0 = tiles.at(step) * n0;
                            const auto seen = kernels::TileMask::of(mask, row0, key0, keys);
                            int sees = 0;
                            for (int r = 0; r < 64; ++r)
                                for (int c = 0; c < n0; ++c)
                                    sees += seen.sees(r, c, MaskClass::generic) ? 1 : 0;
                            EXPECT_TRUE(!whole.has(step) || sees == 64 * n0);
                            EXPECT_TRUE((before <= step && step < own) || sees == 0);
                            EXPECT_EQ(step < before, mask.sink == 0 && key0 + n0 <= row0 - mask.y + 1);
                            const bool in_window = step >= tiles.prefix_end;
                            EXPECT_EQ(whole.has(step), in_window && mask.shows_all(row0, 64, key0, n0, keys,
                                                                                   MaskClass::generic));
                            plain += whole.has(step) ? 1 : 0;
                            unseen += step >= own ? 1 : 0;
                            early += step < before ? 1 : 0;
                        }
                        // The last of a team's own tiles is one that it sees, unless only a window hides it.
                        if (own > 0 && mask.y == 500 && mask.sink == 0) {
                            const auto last = kernels::TileMask::of(mask, row0, tiles.at(own - 1) * n0, keys);
                            EXPECT_TRUE(last.sees(63, 0, MaskClass::causal));
                        }
                    }
    EXPECT_GT(plain, 100);
    EXPECT_GT(unseen, 50);
    EXPECT_GT(early, 10);
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
