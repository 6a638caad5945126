#include "dispatcher/plan/workspace.hpp"

#include "dispatcher/types/error.hpp"
#include "tests/dispatcher/kernels.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace fmha {
namespace {

using ::testing::ElementsAre;

TEST(BwdWorkspace, BatchNonDeterministic) {
    BwdWorkspaceInputs in;
    in.batch = 2;
    in.nhead_q = 3;
    in.seqlen_q = 100;
    in.seqlen_k = 100;
    in.hdim_q = 64;
    in.key_tile = 128;
    const BwdWorkspaceLayout layout = bwd_workspace_layout(in);
    EXPECT_EQ(layout.size.host_bytes, 16);
    EXPECT_EQ(layout.size.start_bytes, 0);
    EXPECT_EQ(layout.size.dq_acc_elements, 38400);
    EXPECT_EQ(layout.size.bytes, 153616);
    EXPECT_TRUE(layout.size.zero_dq_acc);
    EXPECT_THAT(layout.nsplits, ElementsAre(1));
}

TEST(BwdWorkspace, GroupNonDeterministic) {
    const std::array<std::int64_t, 2> rows{5, 70}, keys{200, 64};
    BwdWorkspaceInputs in;
    in.group = true;
    in.batch = 2;
    in.nhead_q = 2;
    in.hdim_q = 32;
    in.key_tile = 64;
    in.physical_q = rows;
    in.physical_k = keys;
    const BwdWorkspaceLayout layout = bwd_workspace_layout(in);
    EXPECT_THAT(layout.nsplits, ElementsAre(1));
    EXPECT_EQ(layout.size.start_bytes, 0); // seqstart_q says where entries begin
    EXPECT_EQ(layout.size.host_bytes, 16);
    EXPECT_EQ(layout.size.dq_acc_elements, 4800); // 2 heads, 75 rows of 32 channels
    EXPECT_EQ(layout.size.bytes, 19216);
    EXPECT_TRUE(layout.size.zero_dq_acc);
    EXPECT_TRUE(layout.size.exact);
}

TEST(BwdWorkspace, GroupDeterministic) {
    const std::array<std::int64_t, 2> rows{5, 70}, keys{200, 64};
    BwdWorkspaceInputs in;
    in.group = in.deterministic = true;
    in.batch = 2;
    in.nhead_q = 2;
    in.hdim_q = 32;
    in.key_tile = 64;
    in.physical_q = rows;
    in.physical_k = keys;
    const BwdWorkspaceLayout layout = bwd_workspace_layout(in);
    EXPECT_THAT(layout.nsplits, ElementsAre(4, 1));
    EXPECT_THAT(layout.start, ElementsAre(0, 1280, 5760));
    EXPECT_EQ(layout.size.nsplits_bytes, 16);
    EXPECT_EQ(layout.size.start_bytes, 32);
    EXPECT_EQ(layout.size.host_bytes, 48);
    EXPECT_EQ(layout.size.bytes, 23088);
    EXPECT_FALSE(layout.size.zero_dq_acc);
    EXPECT_TRUE(layout.size.exact);
    const auto image = layout.host_image();
    ASSERT_EQ(image.size(), 48U);
    std::int32_t second_splits = 0;
    std::int64_t last_start = 0;
    std::memcpy(&second_splits, image.data() + 4, 4);
    std::memcpy(&last_start, image.data() + 16 + 16, 8);
    EXPECT_EQ(second_splits, 1);
    EXPECT_EQ(last_start, 5760);
    in.masked = true;
    EXPECT_TRUE(bwd_workspace_size(in).zero_dq_acc);
    in.masked = false;
    in.keys_may_be_shorter = true;
    EXPECT_TRUE(bwd_workspace_size(in).zero_dq_acc);
}

TEST(BwdWorkspace, AWorkersJobsFollowTheSplits) {
    const auto jobs_in_memory = [](const BwdWorkspaceLayout& layout) {
        std::int32_t jobs = 0;
        std::memcpy(&jobs, layout.host_image().data() + 4, 4);
        return jobs;
    };
    // The samples of X-2: (B, Hq, Sk, kN0, W) and q.
    for (const auto& [batch, heads, keys, tile, workers, jobs] :
         {std::array{1, 1, 1024, 128, 4, 2}, std::array{2, 3, 640, 128, 8, 4},
          std::array{1, 8, 1024, 64, 304, 1}, std::array{4, 8, 300, 128, 6, 16},
          std::array{2, 4, 512, 128, 5, 7}, std::array{1, 2, 640, 64, 7, 3}}) {
        BwdWorkspaceInputs in;
        in.deterministic = true;
        in.batch = batch;
        in.nhead_q = heads;
        in.seqlen_q = 16;
        in.seqlen_k = keys;
        in.hdim_q = 8;
        in.key_tile = tile;
        in.compute_units = workers;
        EXPECT_EQ(jobs_in_memory(bwd_workspace_layout(in)), jobs);
        in.compute_units = 0;
        EXPECT_EQ(jobs_in_memory(bwd_workspace_layout(in)), 1) << "without workers every tile is a split";
        in.deterministic = false;
        EXPECT_EQ(jobs_in_memory(bwd_workspace_layout(in)), 1);
    }
}

TEST(BwdWorkspace, PreparingWritesTheHostPartAndClearsWhereItMust) {
    BwdWorkspaceInputs in;
    in.batch = 2;
    in.nhead_q = 1;
    in.seqlen_q = 3;
    in.seqlen_k = 5;
    in.hdim_q = 8;
    in.key_tile = 16;
    BwdWorkspaceLayout layout = bwd_workspace_layout(in);
    alignas(16) std::array<std::byte, 512> memory{};
    const auto bytes = static_cast<std::size_t>(layout.size.bytes);
    ASSERT_LT(bytes, memory.size());
    const auto holds = [&](std::byte expected) {
        return std::all_of(memory.begin() + layout.size.host_bytes, memory.begin() + layout.size.bytes,
                           [&](std::byte x) { return x == expected; });
    };
    memory.fill(std::byte{0xFF});
    layout.prepare(std::span(memory).first(bytes));
    EXPECT_TRUE(holds(std::byte{0}));
    EXPECT_EQ(memory[0], std::byte{1});
    EXPECT_EQ(memory[bytes], std::byte{0xFF}) << "behind the workspace";
    memory.fill(std::byte{0xFF});
    layout.size.zero_dq_acc = false;
    layout.prepare(std::span(memory).first(bytes));
    EXPECT_TRUE(holds(std::byte{0xFF}));
    EXPECT_THROW(layout.prepare(std::span(memory).first(bytes - 1)), WorkspaceError);
    EXPECT_THROW(layout.prepare(std::span(memory).subspan(8)), WorkspaceError);
}

TEST(BwdWorkspace, BatchDeterministicPersistent) {
    BwdWorkspaceInputs in;
    in.deterministic = true;
    in.batch = 2;
    in.nhead_q = 3;
    in.seqlen_q = 96;
    in.seqlen_k = 640;
    in.hdim_q = 128;
    in.key_tile = 128;
    in.compute_units = 8;
    const BwdWorkspaceSize size = bwd_workspace_size(in);
    EXPECT_EQ(size.host_bytes, 16);
    EXPECT_EQ(size.dq_acc_elements, 147456);
    EXPECT_EQ(size.bytes, 589840);
    EXPECT_TRUE(size.zero_dq_acc);
    in.seqlen_k = 0;
    EXPECT_EQ(bwd_workspace_size(in).dq_acc_elements, 0);
    in.direct_dq = true;
    EXPECT_EQ(bwd_workspace_size(in).bytes, 0);
}

TEST(BwdWorkspace, PersistentSplitSamples) {
    EXPECT_EQ(persistent_splits({.batch = 1, .heads = 1, .seqlen_k = 1024, .key_tile = 128, .workers = 4}),
              4);
    EXPECT_EQ(persistent_splits({.batch = 2, .heads = 3, .seqlen_k = 640, .key_tile = 128, .workers = 8}), 2);
    EXPECT_EQ(persistent_splits({.batch = 1, .heads = 8, .seqlen_k = 1024, .key_tile = 64, .workers = 304}),
              16);
    EXPECT_EQ(persistent_splits({.batch = 4, .heads = 8, .seqlen_k = 300, .key_tile = 128, .workers = 6}), 2);
    EXPECT_EQ(persistent_splits({.batch = 2, .heads = 4, .seqlen_k = 512, .key_tile = 128, .workers = 5}), 2);
    EXPECT_EQ(persistent_splits({.batch = 1, .heads = 2, .seqlen_k = 640, .key_tile = 64, .workers = 7}), 4);
    EXPECT_EQ(persistent_splits({.batch = 1, .heads = 2, .seqlen_k = 0, .key_tile = 64, .workers = 7}), 0);
}

/// The jobs of a reduced problem are those of its KV heads (W-11); each query head still has its splits.
TEST(BwdWorkspace, ReducedGradientsHaveTheJobsOfKvHeads) {
    BwdWorkspaceInputs in;
    in.deterministic = true;
    in.batch = 2;
    in.nhead_q = 12;
    in.heads_of_job = 4;
    in.hdim_q = 64;
    in.seqlen_q = 10;
    in.seqlen_k = 640;
    in.key_tile = 128;
    in.compute_units = 8; // (2, 3, 640, 128, 8) of X-2: 5 tiles, 4 jobs a worker, 2 splits
    const BwdWorkspaceLayout layout = bwd_workspace_layout(in);
    EXPECT_EQ(layout.jobs_per_worker, 4);
    EXPECT_EQ(layout.nsplits.front(), 2);
    EXPECT_EQ(layout.size.dq_acc_elements, 2 * 12 * 2 * 10 * 64);
}

TEST(BwdWorkspace, UnknownWorkersGiveAnUpperBoundThatSaysSo) {
    BwdWorkspaceInputs in;
    in.deterministic = true;
    in.batch = in.nhead_q = 1;
    in.seqlen_q = 64;
    in.seqlen_k = 1024;
    in.hdim_q = 64;
    in.key_tile = 128;
    const BwdWorkspaceSize bound = bwd_workspace_size(in);
    EXPECT_FALSE(bound.exact);
    for (const std::int64_t workers : {1, 3, 4, 100}) {
        in.compute_units = workers;
        EXPECT_LE(bwd_workspace_size(in).bytes, bound.bytes) << workers;
    }
}

/// X-3 packs the regions of entries; a rectangle would give each the longest entry's rows and splits. Without the lengths the size is
/// that of the rectangle, and says that it is a bound.
TEST(BwdWorkspace, PackedEntriesTakeNoMoreThanARectangle) {
    std::mt19937_64 engine(12);
    const auto draw = [&](std::int64_t lo, std::int64_t hi) {
        return std::uniform_int_distribution<std::int64_t>(lo, hi)(engine);
    };
    double packed = 0.0, rectangular = 0.0;
    for (int set = 0; set < 10000; ++set) {
        BwdWorkspaceInputs in;
        in.group = true;
        in.deterministic = draw(0, 3) != 0;
        in.batch = draw(1, 16);
        in.nhead_q = draw(1, 8);
        in.hdim_q = 32 * draw(1, 4);
        in.key_tile = draw(0, 1) == 0 ? 64 : 128;
        const std::int64_t longest = draw(1, 4096);
        std::vector<std::int64_t> rows, keys;
        for (std::int64_t b = 0; b < in.batch; ++b) {
            rows.push_back(draw(0, 9) == 0 ? 0 : draw(1, longest));
            keys.push_back(draw(0, 9) == 0 ? 0 : draw(1, longest));
        }
        in.seqlen_q = std::ranges::max(rows);
        in.seqlen_k = std::ranges::max(keys);
        const BwdWorkspaceSize bound = bwd_workspace_size(in);
        in.physical_q = rows;
        in.physical_k = keys;
        const BwdWorkspaceLayout layout = bwd_workspace_layout(in);
        ASSERT_LE(layout.size.bytes, bound.bytes) << "set " << set;
        EXPECT_TRUE(layout.size.exact);
        EXPECT_FALSE(bound.exact);
        // The regions lie one behind the other and end where the workspace does.
        ASSERT_TRUE(std::ranges::is_sorted(layout.start)) << "set " << set;
        ASSERT_EQ(layout.start.back(), layout.size.dq_acc_elements) << "set " << set;
        packed += static_cast<double>(layout.size.bytes);
        rectangular += static_cast<double>(bound.bytes);
    }
    EXPECT_LT(packed, 0.6 * rectangular);
    std::cout << "packed entries take " << std::lround(100.0 * packed / rectangular)
              << " % of the rectangle\n";
}

/// Bounds of logical lengths (N-2) say nothing about padding behind them.
TEST(BwdWorkspace, PaddingBeyondTheLongestLengthNeedsTheLengths) {
    const std::array<std::int64_t, 3> physical{512, 88, 4096};
    BwdWorkspaceInputs in;
    in.group = in.deterministic = true;
    in.batch = 3;
    in.nhead_q = 8;
    in.hdim_q = 128;
    in.key_tile = 128;
    in.seqlen_q = in.seqlen_k = 64; // the longest logical length
    const std::int64_t stated = bwd_workspace_size(in).bytes;
    EXPECT_FALSE(bwd_workspace_size(in).exact);
    in.physical_q = in.physical_k = physical;
    const BwdWorkspaceSize exact = bwd_workspace_size(in);
    EXPECT_TRUE(exact.exact);
    EXPECT_EQ(exact.bytes, 16 + 32 + std::int64_t{4} * 8 * 128 * (4 * 512 + 1 * 88 + 32 * 4096));
    EXPECT_GT(exact.bytes, stated);
}

TEST(BwdWorkspace, SizesBeyond64BitsAndWrongListsAreErrors) {
    BwdWorkspaceInputs in;
    in.batch = in.nhead_q = std::int64_t{1} << 32;
    in.seqlen_q = 1;
    in.hdim_q = 8;
    EXPECT_THROW(bwd_workspace_size(in), WorkspaceError);
    // Products above 2^31 are ordinary.
    in.batch = 32;
    in.nhead_q = 64;
    in.seqlen_q = 8192;
    in.hdim_q = 256;
    EXPECT_EQ(bwd_workspace_size(in).bytes, std::int64_t{4} * 32 * 64 * 8192 * 256 + 16);
    const std::array<std::int64_t, 1> one{5};
    in.group = true;
    in.physical_q = one;
    EXPECT_THROW(bwd_workspace_size(in), WorkspaceError);
    in.physical_q = {};
    in.deterministic = true;
    EXPECT_THROW(bwd_workspace_size(in), WorkspaceError);
}

TEST(SplitKvWorkspace, PartialsAreFp32AndAligned) {
    const SplitKvWorkspace workspace = splitkv_workspace(3, 5, 40, 7);
    EXPECT_EQ(workspace.lse_acc_offset, 0);
    EXPECT_EQ(workspace.o_acc_offset, 432); // 105 values of 4 bytes, to the next multiple of 16
    EXPECT_EQ(workspace.bytes, 432 + 105 * 40 * 4);
    EXPECT_THROW(splitkv_workspace(std::numeric_limits<std::int64_t>::max(), 5, 40, 7), WorkspaceError);
}

/// Samples of S-6 with B*H*mb and U as given there; blocks of 64 rows, wave64, so U is twice the units.
TEST(NumSplits, Samples) {
    const auto splits = [](std::int64_t work, std::int64_t units) {
        Problem problem = testing::builder_for(ApiFamily::fwd_splitkv).dims(128, 128, work, 64, 512).build();
        problem.nhead_q = problem.nhead_k = 1;
        return choose_num_splits(problem, units / 2, 64);
    };
    EXPECT_EQ(splits(16, 608), 33);
    EXPECT_EQ(splits(256, 608), 7);
    EXPECT_EQ(splits(1, 608), 109);
    EXPECT_EQ(splits(256, 264), 1);
    EXPECT_EQ(splits(32, 264), 8);
    EXPECT_EQ(splits(24, 264), 10);
    EXPECT_EQ(splits(5, 132), 23);
    // 8 entries of two blocks of 64 rows are 16 units of work as well.
    Problem of_two_blocks = testing::builder_for(ApiFamily::fwd_splitkv).dims(128, 128, 8, 65, 512).build();
    of_two_blocks.nhead_q = of_two_blocks.nhead_k = 1;
    EXPECT_EQ(choose_num_splits(of_two_blocks, 304, 64), 33);
}

TEST(NumSplits, OneQueryRowOfAHeadGroupBecomesOneBlock) {
    Problem problem =
        testing::builder_for(ApiFamily::fwd_splitkv).dims(128, 128, 4, 1, 4096).nheads(32, 4).build();
    // 4 entries x 4 KV heads x one block of 8 rows = 16 units of work.
    EXPECT_EQ(choose_num_splits(problem, 304, 64), 33);
    problem.signature.bias = BiasType::alibi;
    // 4 x 32 heads = 128 units of work over 608: 9 splits fill 1.89 of 2 rounds, fewer fill less than 0.85.
    EXPECT_EQ(choose_num_splits(problem, 304, 64), 9);
    // Wave32 devices count twice as many units.
    problem.signature.bias = BiasType::no_bias;
    EXPECT_EQ(choose_num_splits(problem, 152, 32), 33);
}

/// S-9 with 132 multiprocessors and W = 8 blocks an entry: U = 132 up to 4 entries of 32 heads, 264 above and with 64 channels.
TEST(NumSplits, HopperFillsWholeRoundsOfBlocksOfSeveralWaves) {
    const auto splits = [](std::int64_t batch, std::int64_t rows, const char* arch, std::int64_t hdim = 128,
                           DataType type = DataType::bf16) {
        Problem problem = testing::builder_for(ApiFamily::fwd_splitkv)
                              .data_type(type)
                              .dims(hdim, hdim, batch, rows, 2048)
                              .nheads(32, 8)
                              .build();
        problem.arch = arch;
        return choose_num_splits(problem, 132, 32);
    };
    EXPECT_EQ(splits(1, 1, "sm_90"), 16); // 128 of 132
    EXPECT_EQ(splits(4, 1, "sm_90"), 4);
    EXPECT_EQ(splits(8, 1, "sm_90"), 4);      // 256 of 264
    EXPECT_EQ(splits(1, 1, "sm_90", 64), 16); // 32 fill 256 of 264, the keys are 16 tiles of 128
    EXPECT_EQ(splits(64, 1, "sm_90"), 1);     // W = 512, 1.94 rounds
    EXPECT_EQ(splits(67, 1, "sm_90"), 2);     // W = 536, 2.03 rounds
    EXPECT_EQ(splits(128, 1, "sm_90"), 1);    // W = 1024, 3.88 rounds
    EXPECT_EQ(splits(132, 1, "sm_90"), 1);    // W = 1056, four rounds
    EXPECT_EQ(splits(8, 4, "sm_90"), 4);      // four heads share a block: W = 64 of 264
    EXPECT_EQ(splits(1, 4, "sm_90"), 32);     // W = 8
    EXPECT_EQ(splits(8, 3, "sm_90"), 4);      // padded to four rows
    EXPECT_EQ(splits(4, 8, "sm_90"), 4);      // two heads: W = 64
    EXPECT_EQ(splits(8, 16, "sm_90"), 1);     // one head: W = 256
    EXPECT_EQ(splits(8, 4, "sm_90", 32), 1);
    EXPECT_EQ(splits(1, 4, "sm_90", 256), 4);                 // no kernel shares a tile: W = 32 of 132
    EXPECT_EQ(splits(1, 17, "sm_90"), 15);                    // S-6 with W = 32 and U = 528
    EXPECT_EQ(splits(1, 1, "sm_90", 128, DataType::fp8), 32); // S-6 says 57, the keys are 32 tiles
    EXPECT_EQ(splits(1, 1, "gfx1201"), 57);
}

/// S-9: more blocks than tiles of keys would have nothing to read. On AMD the formula is upstream's and knows no keys.
TEST(NumSplits, HopperHasNoMoreThanTilesOfKeys) {
    const auto splits = [](std::int64_t keys, std::int64_t rows, std::int64_t hdim, const char* arch) {
        Problem problem = testing::builder_for(ApiFamily::fwd_splitkv)
                              .data_type(DataType::bf16)
                              .dims(hdim, hdim, 1, rows, keys)
                              .nheads(1, 1)
                              .build();
        problem.arch = arch;
        return choose_num_splits(problem, arch == std::string_view("sm_90") ? 132 : 256, 64);
    };
    EXPECT_EQ(splits(100, 1, 128, "sm_90"), 1);
    EXPECT_EQ(splits(128, 1, 128, "sm_90"), 1);
    EXPECT_EQ(splits(129, 1, 128, "sm_90"), 2);
    EXPECT_EQ(splits(1 << 20, 1, 128, "sm_90"), 122);
    EXPECT_EQ(splits(512, 1, 64, "sm_90"), 4);
    EXPECT_EQ(splits(512, 1, 32, "sm_90"), 8);
    EXPECT_EQ(splits(512, 1, 256, "sm_90"), 8);
    EXPECT_EQ(splits(512, 17, 128, "sm_90"), 8);
    EXPECT_EQ(splits(512, 17, 256, "sm_90"), 16);
    EXPECT_EQ(splits(0, 1, 128, "sm_90"), 122) << "a length that is not stated bounds nothing";
    EXPECT_EQ(splits(100, 1, 128, "gfx950"), 109);
    // In group mode the scalar length says nothing (N-2).
    Problem packed =
        testing::builder_for(ApiFamily::fwd_splitkv).dims(128, 128, 1, 1, 100).nheads(1, 1).build();
    packed.arch = "sm_90";
    packed.signature.mode = Mode::group;
    packed.max_seqlen_q = 1;
    EXPECT_EQ(choose_num_splits(packed, 132, 64), 122);
    packed.max_seqlen_k = 100;
    EXPECT_EQ(choose_num_splits(packed, 132, 64), 1);
}

} // namespace
} // namespace fmha
