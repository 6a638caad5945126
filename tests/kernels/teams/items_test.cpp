// The items of warp-specialised launches: each computed once, and blocks that end together.

#include "kernels/programs/ws_items.hpp"
#include "team_agreement.hpp"
#include "tests/support/dense_problem.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace fmha::hip_target::test {
namespace {

/// A launch that has only extents.
FwdArgs extents(std::int64_t batch, std::int64_t heads, std::int64_t seqlen, std::int64_t hdim) {
    FwdArgs args;
    args.shape = fmha::test::dense_shape({batch, heads, heads / 2, seqlen, seqlen, hdim, hdim});
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
             {std::array<std::int64_t, 3>{3, 6, 700}, {1, 2, 100}, {40, 32, 300}, {2, 4, 5000}, {1, 3, 600}})
            for (const std::uint32_t blocks : {1U, 7U, 132U}) {
                const kernels::WsGrid grid =
                    kernels::WsGrid(masked(mask), extents(batch, heads, seqlen, 128)).dealt_to(blocks);
                const std::int64_t q_tiles = (seqlen + 127) / 128;
                std::vector<int> seen(static_cast<std::size_t>(batch * heads * q_tiles));
                for (std::uint32_t block = 0; block < blocks; ++block) {
                    const kernels::BlockItems items{grid, block, false};
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
        return kernels::WsGrid(masked(mask), args).on(132).blocks;
    };
    EXPECT_EQ(blocks(MaskClass::none, extents(8, 16, 2048, 128)), 132);
    EXPECT_EQ(blocks(MaskClass::none, extents(1, 2, 256, 128)), 4);
    EXPECT_EQ(blocks(MaskClass::causal, extents(32, 16, 512, 128)), 132);
    EXPECT_EQ(blocks(MaskClass::causal, extents(8, 16, 2048, 128)), 132);
    EXPECT_EQ(blocks(MaskClass::causal, extents(1, 16, 16384, 128)), 2048); // 128 tiles a head
    // 320 pairs would leave blocks idle for half a round of three.
    EXPECT_EQ(blocks(MaskClass::causal, extents(5, 16, 1024, 128)), 640);
    // Lengths of a group are on the device: of 512 items a block would have long ones or short ones, of 2048 it has both.
    const auto packed = [](std::int64_t batch) {
        FwdArgs args = extents(batch, 16, 2048, 128);
        args.shape.mode = Mode::group;
        return args;
    };
    EXPECT_EQ(blocks(MaskClass::none, packed(2)), 512);
    EXPECT_EQ(blocks(MaskClass::none, packed(8)), 131);
    EXPECT_EQ(blocks(MaskClass::causal, packed(8)), 2048);
    EXPECT_EQ(blocks(MaskClass::causal, packed(16)), 131);
}

// Where sequences have one tile of the twelve that the longest has, all blocks have some to compute.
TEST(Items, OfShortSequencesGoToAllBlocks) {
    FwdArgs args = extents(64, 32, 1536, 128); // 12 tiles, a divisor of 132
    args.shape.mode = Mode::group;
    for (const MaskClass mask : {MaskClass::none, MaskClass::causal}) {
        const kernels::WsGrid grid = kernels::WsGrid(masked(mask), args).on(132);
        ASSERT_EQ(grid.blocks, 131U);
        for (std::uint32_t block = 0; block < grid.blocks; ++block) {
            int first_tiles = 0;
            const kernels::BlockItems items{grid, block, false};
            for (std::uint32_t n = 0; items.exists(n); ++n) first_tiles += items[n].q_tile == 0;
            EXPECT_GE(first_tiles, 13) << block; // 2048 of them: 15.6 a block
            EXPECT_LE(first_tiles, 18) << block;
        }
    }
}

// 512 rows are two tiles of 192 and one in which a team has no row: 132 blocks, a multiple of three, would each compute one kind of tile.
TEST(Items, MixTilesOfTwoAndOfThreeTeams) {
    const auto grid = [](std::int64_t batch, std::int64_t seqlen) {
        const FwdProblem problem(team_shape(DataType::bf16, 64));
        KernelConfig kernel = team_kernel(problem, 3, 128, 64);
        kernel.signature.mask = MaskClass::none;
        return kernels::WsGrid(kernel, extents(batch, 32, seqlen, 64)).on(132);
    };
    const kernels::WsGrid mixed = grid(32, 512);
    EXPECT_EQ(mixed.blocks, 131U);
    for (std::uint32_t block = 0; block < mixed.blocks; ++block) {
        std::array<int, 3> of_kind{};
        const kernels::BlockItems items{mixed, block, false};
        for (std::uint32_t n = 0; items.exists(n); ++n) ++of_kind[static_cast<std::size_t>(items[n].q_tile)];
        const auto [fewest, most] = std::ranges::minmax(of_kind);
        EXPECT_LE(most - fewest, 1) << block;
    }
    EXPECT_EQ(grid(32, 576).blocks, 132U); // three teams have rows everywhere
    EXPECT_EQ(grid(2, 8192).blocks, 132U); // one block less would make 22 rounds of 21
}

// 2048 rows are eleven tiles of 192, whose pairs have 18 or 19 tiles of keys: each of 132 blocks, twelve times eleven, would compute one kind.
TEST(Items, MixPairsThatDifferInLength) {
    const FwdProblem problem(team_shape(DataType::bf16, 64));
    KernelConfig kernel = team_kernel(problem, 3, 128, 64);
    kernel.signature.mask = MaskClass::causal;
    const kernels::WsGrid grid = kernels::WsGrid(kernel, extents(8, 32, 2048, 64)).on(132);
    EXPECT_EQ(grid.blocks, 131U);
    for (std::uint32_t block = 0; block < grid.blocks; ++block) {
        std::int64_t key_tiles = 0, pairs = 0;
        const kernels::BlockItems items{grid, block, false};
        for (std::uint32_t n = 0; items.exists(n); ++n) {
            key_tiles += (std::min<std::int64_t>(192 * (items[n].q_tile + 1), 2048) + 127) / 128;
            pairs += n % 2;
        }
        EXPECT_LE(key_tiles, 202) << block; // of eleven pairs; 209 of the longest ones
        EXPECT_GE(pairs, 10) << block;
    }
}

// A block of a window has as many tiles of keys as others, a hundredth more or less for every tile of an item that is not there for it: where
// sequences begin and end items see less than elsewhere.
TEST(Items, UnderAWindowBlocksEndTogether) {
    struct Window {
        std::int64_t batch, seqlen, hdim, m0, n0, left;
        double most; ///< of a block, in parts of the mean
    };
    for (const Window& w : {Window{2, 8192, 64, 192, 128, 2047, 1.01},
                            {8, 2048, 128, 128, 128, 1023, 1.035},
                            {2, 8192, 128, 128, 128, 2047, 1.01},
                            {1, 16384, 128, 128, 128, 4095, 1.01},
                            {8, 2048, 256, 128, 64, 511, 1.035},
                            {2, 8192, 256, 128, 64, 2047, 1.01},
                            {1, 16384, 256, 128, 64, 4095, 1.01}}) {
        const FwdProblem problem(team_shape(DataType::bf16, w.hdim));
        KernelConfig kernel = team_kernel(problem, static_cast<int>(w.m0 / 64), static_cast<int>(w.n0),
                                          static_cast<int>(w.hdim));
        kernel.signature.mask = MaskClass::generic;
        FwdArgs args = extents(w.batch, 2048 / w.hdim, w.seqlen, w.hdim);
        args.mask = {.type = MaskType::top_left, .left = w.left, .right = 0};
        const kernels::WsGrid grid = kernels::WsGrid(kernel, args).on(132);
        ASSERT_EQ(grid.blocks, 132U);
        std::vector<std::int64_t> of_block;
        for (std::uint32_t block = 0; block < grid.blocks; ++block) {
            const kernels::BlockItems items{grid, block, true};
            std::int64_t key_tiles = 0;
            for (std::uint32_t n = 0; items.exists(n); ++n) {
                const std::int64_t row0 = items[n].q_tile * w.m0, rows = std::min(w.m0, w.seqlen - row0);
                const std::int64_t first = std::max<std::int64_t>(row0 - w.left, 0), last = row0 + rows - 1;
                key_tiles += last / w.n0 - first / w.n0 + 2; // and what an item takes beside its tiles
            }
            of_block.push_back(key_tiles);
        }
        const double mean = static_cast<double>(std::reduce(of_block.begin(), of_block.end())) / 132;
        EXPECT_LE(static_cast<double>(std::ranges::max(of_block)), w.most * mean)
            << w.seqlen << " of " << w.hdim << ", " << w.left;
    }
}

TEST(Items, ArePairsOfEqualLengthUnderACausalMask) {
    for (const std::int64_t seqlen : {512, 1920, 2048}) {
        const kernels::WsGrid grid =
            kernels::WsGrid(masked(MaskClass::causal), extents(4, 6, seqlen, 128)).dealt_to(5);
        const std::int64_t q_tiles = seqlen / 128;
        for (std::uint32_t block = 0; block < grid.blocks; ++block) {
            const kernels::BlockItems items{grid, block, false};
            for (std::uint32_t n = 0; items.exists(n + 1); n += 2) {
                const kernels::FwdItem first = items[n], second = items[n + 1];
                EXPECT_GE(first.q_tile, (q_tiles - 1) / 2 - (second.h != first.h ? q_tiles : 0));
                EXPECT_EQ(first.q_tile + second.q_tile, q_tiles - 1);
                EXPECT_EQ(first.b * 6 + first.h / 2, second.b * 6 + second.h / 2);
            }
        }
    }
}

} // namespace
} // namespace fmha::hip_target::test
