#pragma once

#include "kernels/programs/fmha_fwd.hpp"

namespace fmha::kernels {

/// The rows of a block whose query heads may share a tile (GQA packing). Where an entry has at most one query row, the row of
/// every head of a KV head sees the same keys, hence their rows lie below each other in one tile and the keys are read
/// once for all of them. Everywhere else the rows are query rows of one head.
struct PackedHeads {
    std::int64_t heads = 1; ///< query heads in the rows of a block; 1 = not packed

    FMHA_DEVICE constexpr bool any() const { return heads > 1; }

    /// The choice of a launch. Masks must hide no key before the last one that a row sees (M-3: y ≥ 1 in row 0), and nothing else
    /// may depend on the head: no ALiBi slope, no sink logit that `takes_sink`. Teams, and kernels of a few tokens, have HeadRows.
    template <class Args>
    FMHA_DEVICE static constexpr PackedHeads of(const KernelConfig& cfg, const Args& args, bool takes_sink) {
        const Shape& shape = args.shape;
        const std::int64_t rows = shape.mode == Mode::group ? shape.max_seqlen_q : shape.seqlen_q;
        const bool from_first_key =
            cfg.signature.mask == MaskClass::none || args.mask.type == MaskType::no_mask ||
            (args.mask.type == MaskType::window_generic ? args.mask.left >= 0 : args.mask.left < 0);
        if (cfg.algorithm.pipeline == Pipeline::ws || HeadRows::serve_tokens(cfg) || !cfg.algorithm.pad.s ||
            rows > 1 || !from_first_key || cfg.signature.bias == BiasType::alibi ||
            cfg.signature.has_dropout || cfg.signature.qscale == QScale::per_token_head ||
            (takes_sink && cfg.signature.has_sink_logit && args.score.sink_logit != nullptr))
            return {};
        return {static_cast<std::int64_t>(static_cast<std::uint32_t>(shape.nhead_q) /
                                          static_cast<std::uint32_t>(shape.nhead_k))};
    }

    /// Rows of all heads of a block, of an entry with `seqlen_q` query rows.
    FMHA_DEVICE constexpr std::int64_t rows(std::int64_t seqlen_q) const { return seqlen_q * heads; }
    /// The first query head of block `h` of its entry.
    FMHA_DEVICE constexpr std::int64_t first(std::int64_t h) const { return h * heads; }
    /// Of the keys of an entry, those that its rows see: [0, …).
    FMHA_DEVICE constexpr std::int64_t seen(const Mask& mask, std::int64_t seqlen_k) const {
        if (!any() || mask.x >= seqlen_k) return seqlen_k;
        return mask.x > 0 ? mask.x : 0;
    }
    /// The mask of a tile whose keys end with the last visible one.
    FMHA_DEVICE constexpr Mask in_tile(const Mask& mask, std::int64_t seqlen_k) const {
        return any() ? Mask{seqlen_k, heads, 0, 0} : mask;
    }
};

/// The blocks of one launch: those of forward, or one for all heads that are packed.
struct PackedGrid : FwdGrid {
    template <class Args>
    FMHA_DEVICE constexpr PackedGrid(const KernelConfig& config, const Args& args, const PackedHeads& packed)
        : FwdGrid(config, args) {
        if (!packed.any()) return;
        heads = args.shape.nhead_k;
        q_tiles = (packed.heads + config.algorithm.tile.m0 - 1) / config.algorithm.tile.m0;
    }
};

/// The blocks of one launch of a program that stores its rows by itself.
template <class Args>
struct WholeRowGrid : PackedGrid {
    FMHA_DEVICE constexpr WholeRowGrid(const KernelConfig& config, const Args& args)
        : PackedGrid(config, args, PackedHeads::of(config, args, true)) {}
};

} // namespace fmha::kernels
