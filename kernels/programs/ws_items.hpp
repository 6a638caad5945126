#pragma once

#include "kernels/programs/key_loop.hpp"

#include <cstdint>

namespace fmha::kernels {

/// The items of a warp-specialised launch, in the order in which its blocks take them.
///
/// Where all query tiles see the same keys, those of a head follow each other, and a block computes several. Where a mask makes later ones
/// longer, the longest of several heads come first: of as many heads as have their keys and values in the L2 cache, where each block computes
/// one item and the next one begins where another ends. With few query tiles a head, what stands before and after the loop over
/// keys counts for more, and blocks compute several; as many heads at once as fill eight rounds of all blocks, so that
/// sums of short and long items are alike.
struct WsGrid {
    std::uint32_t heads, q_tiles, v_tiles, all_heads, heads_at_once = 1;
    bool several_a_block = true;

    FMHA_DEVICE constexpr WsGrid(const KernelConfig& config, const FwdArgs& args)
        : heads(narrow(args.shape.nhead_q)),
          q_tiles(tiles(args.shape.mode == Mode::group ? args.shape.max_seqlen_q : args.shape.seqlen_q,
                        config.algorithm.tile.m0)),
          v_tiles(tiles(args.shape.hdim_v, config.algorithm.tile.n1)),
          all_heads(narrow(args.shape.batch * args.shape.nhead_q)) {
        several_a_block = args.shape.mode == Mode::batch; // sequences of a group have lengths of their own
        if (config.signature.mask == MaskClass::none || all_heads == 0 || q_tiles == 0) return;
        constexpr std::int64_t cached_bytes = 32 << 20, most_bytes = 72 << 20; // an H200 caches 50 MB
        constexpr std::uint32_t eight_rounds = 8 * 132, few_tiles = 16;
        const Shape& shape = args.shape;
        const std::int64_t rows = shape.seqlen_k > shape.max_seqlen_q ? shape.seqlen_k : shape.max_seqlen_q;
        const std::int64_t bytes_of_kv_head = (rows > 0 ? rows : 1) * (shape.hdim_q + shape.hdim_v) * 2;
        const std::int64_t group = shape.nhead_q / shape.nhead_k;
        const std::uint32_t in_rounds = at_most(all_heads, (eight_rounds + q_tiles - 1) / q_tiles);
        several_a_block =
            several_a_block && q_tiles <= few_tiles && in_rounds * bytes_of_kv_head <= most_bytes * group;
        const std::int64_t cached = cached_bytes / bytes_of_kv_head * group;
        heads_at_once = several_a_block ? in_rounds : at_most(all_heads, cached > group ? cached : group);
    }

    /// How many blocks a launch has on a device of so many multiprocessors.
    constexpr std::int64_t blocks(std::int64_t multiprocessors) const {
        return several_a_block && multiprocessors > 0 && multiprocessors < size() ? multiprocessors : size();
    }
    FMHA_DEVICE constexpr std::int64_t size() const { return std::int64_t{all_heads} * q_tiles * v_tiles; }
    /// Of fewer than 2^31 items.
    FMHA_DEVICE constexpr FwdItem operator[](std::uint32_t n) const {
        const std::uint32_t q = n / v_tiles, of_round = heads_at_once * q_tiles;
        const std::uint32_t round = q / of_round, in_round = q % of_round, first = round * heads_at_once;
        const std::uint32_t count = all_heads - first < heads_at_once ? all_heads - first : heads_at_once;
        const std::uint32_t head = first + in_round % count;
        return {head / heads, head % heads, q_tiles - 1 - in_round / count, n % v_tiles};
    }

  private:
    FMHA_DEVICE static constexpr std::uint32_t at_most(std::uint32_t most, std::int64_t n) {
        return n < most ? narrow(n) : most;
    }
    FMHA_DEVICE static constexpr std::uint32_t narrow(std::int64_t n) {
        return static_cast<std::uint32_t>(n);
    }
    FMHA_DEVICE static constexpr std::uint32_t tiles(std::int64_t extent, std::int64_t tile) {
        return narrow((extent + tile - 1) / tile);
    }
};

/// What one of `blocks` blocks computes. Items are dealt out in rounds, every other one backwards, so that who has the longest of one round has
/// the shortest of the next.
struct BlockItems {
    const KernelConfig& config;
    const FwdArgs& args;
    std::uint32_t block, blocks;

    // The grid is computed for every item: no register is kept for it.
    FMHA_DEVICE constexpr bool exists(std::uint32_t n) const {
        return number(n) < WsGrid(config, args).size();
    }
    FMHA_DEVICE constexpr FwdItem operator[](std::uint32_t n) const {
        return WsGrid(config, args)[number(n)];
    }

  private:
    FMHA_DEVICE constexpr std::uint32_t number(std::uint32_t n) const {
        return n * blocks + (n % 2 == 0 ? block : blocks - 1 - block);
    }
};

/// A single item, where blocks are no persistent ones.
struct OneItem {
    FwdItem item;

    FMHA_DEVICE static constexpr bool exists(std::uint32_t n) { return n == 0; }
    FMHA_DEVICE constexpr FwdItem operator[](std::uint32_t) const { return item; }
};

} // namespace fmha::kernels
