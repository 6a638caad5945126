#pragma once

#include "kernels/programs/fmha_fwd.hpp"

#include <cstdint>

namespace fmha::kernels {

/// The blocks of one forward launch, numbered from 0, so that the query tiles of a head follow each other. A launch asks
/// for size(), a block for the item of its own number.
struct FwdGrid {
    std::int64_t batch, heads, q_tiles, v_tiles;

    FMHA_DEVICE constexpr FwdGrid(const KernelConfig& config, const FwdArgs& args)
        : batch(args.shape.batch), heads(args.shape.nhead_q),
          q_tiles(tiles(args.shape.mode == Mode::group ? args.shape.max_seqlen_q : args.shape.seqlen_q,
                        config.algorithm.tile.m0)),
          v_tiles(tiles(args.shape.hdim_v, config.algorithm.tile.n1)) {}

    FMHA_DEVICE constexpr std::int64_t size() const { return batch * heads * q_tiles * v_tiles; }
    FMHA_DEVICE constexpr FwdItem operator[](std::int64_t n) const {
        const std::int64_t q = n / v_tiles, head = q / q_tiles;
        // Last query tile first: under a causal mask the long blocks start early and the last ones end
        // together.
        return {head / heads, head % heads, q_tiles - 1 - q % q_tiles, n % v_tiles};
    }

  private:
    FMHA_DEVICE static constexpr std::int64_t tiles(std::int64_t extent, std::int64_t tile) {
        return (extent + tile - 1) / tile;
    }
};

} // namespace fmha::kernels
