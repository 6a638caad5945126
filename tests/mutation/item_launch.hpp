#pragma once

#include "kernels/programs/ws_items.hpp"

#include <tuple>
#include <utility>
#include <vector>

/// What the checks of warp-specialised items share.
namespace fmha::test::items {

using Item = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
using kernels::WsGrid;

inline Item tuple_of(const kernels::FwdItem& item) {
    return {item.b, item.h, item.q_tile, item.v_tile};
}

/// A launch of tiles of 4 rows, or of `rows`, whose other numbers all differ.
struct Launch {
    KernelConfig config;
    FwdArgs args;

    Launch(Mode mode, bool masked, std::int64_t batch, std::int64_t heads_q, std::int64_t heads_k,
           std::int64_t q_tiles, std::int64_t keys, std::int64_t channels = 64, std::int16_t rows = 4) {
        config.signature.mode = mode;
        config.signature.mask = masked ? MaskClass::causal : MaskClass::none;
        config.algorithm.tile = {.m0 = rows, .n0 = 2, .n1 = 160};
        config.algorithm.wave.m0 = 2;
        args.shape = {mode, batch, heads_q, heads_k, rows * q_tiles, keys, 0, 0, channels, 128 - channels};
        // In a group the largest length says how many tiles an entry may have, and seqlen_q is none (N-2).
        if (mode == Mode::group) std::swap(args.shape.seqlen_q, args.shape.max_seqlen_q);
    }
    /// Each row sees so many keys before and behind its own, or all: -1.
    Launch window(std::int64_t left, std::int64_t right) const {
        Launch launch = *this;
        launch.config.signature.mask = MaskClass::generic;
        launch.args.mask = {.type = MaskType::window_generic, .left = left, .right = right};
        return launch;
    }
    WsGrid grid() const { return {config, args}; }
};

/// Under a window: rounds of the tiles that see all of it, the last first; then the others of all heads, the longest first. Empty where all do.
std::vector<Item> in_window_order(const Launch& launch);

} // namespace fmha::test::items
