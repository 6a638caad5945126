#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_values.hpp"
#include "dispatcher/types/shared_memory.hpp"
#include "kernels/programs/device.hpp"

#include <cstdint>

namespace fmha::kernels {

/// The rows of a tile where it has those of several query heads of a KV head (GQA packing of `ws`, and of a few tokens over a cache): row r
/// is row `row(r)` of head `head(r)`, both counted from the first one of the tile. Elsewhere all rows are of one head.
struct HeadRows {
    std::int32_t mask = -1,
                 bits = 0; ///< of a row number the part that counts rows, and how many bits that has

    FMHA_DEVICE constexpr bool any() const { return mask >= 0; }
    FMHA_DEVICE constexpr std::int32_t row(std::int32_t r) const { return r & mask; }
    FMHA_DEVICE constexpr std::int32_t head(std::int32_t r) const { return any() ? r >> bits : 0; }
    /// Of `rows` rows of a tile, those of one head, and heads.
    FMHA_DEVICE constexpr std::int64_t of_head(std::int64_t rows) const { return any() ? mask + 1 : rows; }
    FMHA_DEVICE constexpr std::int64_t heads(std::int64_t rows) const { return any() ? rows >> bits : 1; }

    /// Whether a kernel packs: its tile has room for all rows of a problem, and the other rows go to other heads.
    FMHA_DEVICE static constexpr bool serve(const KernelConfig& cfg) {
        const std::int64_t most = cfg.algorithm.max_seq_len_q;
        return cfg.algorithm.pipeline == Pipeline::ws && most > 0 && most <= cfg.algorithm.tile.m0;
    }
    /// Whether a kernel over a cache packs a few tokens: its tile has room for those of two heads. Only masks and sink logits may
    /// ask for a row's number and head.
    FMHA_DEVICE static constexpr bool serve_tokens(const KernelConfig& cfg) {
        const std::int64_t most = cfg.algorithm.max_seq_len_q;
        return cfg.algorithm.pipeline != Pipeline::ws && cfg.algorithm.pad.s && most > 0 &&
               2 * most <= cfg.algorithm.tile.m0 && cfg.signature.bias == BiasType::no_bias &&
               !cfg.signature.has_dropout && cfg.signature.qscale == QScale::no_scale;
    }
    /// The heads of a launch's tile: as many as divide those of a KV head, a power of two. For teams with 16 rows of a wave or more each; a
    /// single one where heads or entries of Q share memory, because their map has no dimension for heads. Over a cache with as many rows
    /// each as the longest entry has.
    template <class Args>
    FMHA_DEVICE static constexpr HeadRows of(const KernelConfig& cfg, const Args& args) {
        bool tokens = false;
        if constexpr (requires { args.place; }) tokens = serve_tokens(cfg);
        if (!tokens && !serve(cfg)) return {};
        const Shape& shape = args.shape;
        const auto group =
            static_cast<std::uint32_t>(shape.nhead_q) / static_cast<std::uint32_t>(shape.nhead_k);
        const bool packs = tokens || !shares_memory(args.q, shape.batch, shape.nhead_q);
        std::int32_t bits = tokens ? 0 : 4;
        const std::int64_t rows = shape.mode == Mode::group ? shape.max_seqlen_q : shape.seqlen_q;
        while (tokens && 1 << bits < rows && 1 << bits < cfg.algorithm.tile.m0) ++bits;
        while (1 << bits < cfg.algorithm.tile.m0 &&
               (!packs || group % static_cast<std::uint32_t>(cfg.algorithm.tile.m0 >> bits) != 0))
            ++bits;
        return {(1 << bits) - 1, bits};
    }
};

} // namespace fmha::kernels
