#pragma once

#include "kernels/programs/fmha_fwd_ws.hpp"
#include "kernels/programs/program.hpp"

namespace fmha::kernels {

/// Forward attention (F-1 … F-10). One block owns m0 query rows of one (entry, head) and n1 channels of the output.
template <class Ctx>
FMHA_DEVICE void fmha_fwd(Ctx& ctx, const FwdArgs& args, const FwdItem& item) {
    const auto& cfg = ctx.cfg();
    const Entry entry = ctx.entry(args.shape, args.lengths, item.b);
    const QueryRows rows = QueryRows::of(cfg.algorithm.tile, entry.seqlen_q, item.q_tile);
    if (rows.count <= 0) return;
    if (cfg.signature.skip_min_seqlen_q && args.shape.min_seqlen_q > 0 &&
        entry.seqlen_q <= args.shape.min_seqlen_q)
        return;

    const std::int64_t hk = ctx.kv_head(args.shape, item.h);
    const FwdMatrices in = FwdMatrices::of(cfg, args, entry, item.b, item.h, hk);
    const Scoring scoring = Scoring::of(ctx, args, entry, item, hk);
    const KeyTiles tiles =
        KeyTiles::of(scoring.mask, rows.first, rows.count, in.k.rows.read, cfg.algorithm.tile.n0);
    attend(
        ctx, args, item, in, scoring, tiles, [&] { return FwdResults::of(cfg, args, entry, item.b, item.h); },
        args.score.scale_o);
}

/// The blocks of one launch of forward, or of a family with the same blocks, numbered from 0, so that the query tiles of a head
/// follow each other. A launch asks for size(), a block for the item of its own number. Where a tile has rows of several heads, these count as one.
struct FwdGrid {
    std::int64_t batch, heads, q_tiles, v_tiles;

    template <class Args>
    FMHA_DEVICE constexpr FwdGrid(const KernelConfig& config, const Args& args)
        : batch(args.shape.batch),
          heads(args.shape.nhead_q / HeadRows::of(config, args).heads(config.algorithm.tile.m0)),
          q_tiles(tiles(args.shape.mode == Mode::group ? args.shape.max_seqlen_q : args.shape.seqlen_q,
                        HeadRows::of(config, args).of_head(config.algorithm.tile.m0))),
          v_tiles(tiles(args.shape.hdim_v, config.algorithm.tile.n1)) {}

    FMHA_DEVICE constexpr std::int64_t size() const { return batch * heads * q_tiles * v_tiles; }
    FMHA_DEVICE constexpr FwdItem operator[](std::int64_t n) const {
        const Divided q = Divided::of(n, v_tiles), head = Divided::of(q.quotient, q_tiles),
                      entry = Divided::of(head.quotient, heads);
        // Last query tile first: under a causal mask the long blocks start early and the last ones end
        // together.
        return {entry.quotient, entry.rest, q_tiles - 1 - head.rest, q.rest};
    }

  private:
    FMHA_DEVICE static constexpr std::int64_t tiles(std::int64_t extent, std::int64_t tile) {
        return (extent + tile - 1) / tile;
    }
};

template <>
struct Program<KernelFamily::fwd> {
    using Args = FwdArgs;
    using Item = FwdItem;
    using Grid = FwdGrid;
    static constexpr bool has_products = true;

    static std::int64_t rows(const KernelConfig& config, const FwdArgs& args, const FwdItem& item) {
        const Entry entry = Entry::of(args.shape, args.lengths, item.b);
        return QueryRows::in_tile(config, args, entry.seqlen_q, item.q_tile);
    }
    template <class Ctx>
    FMHA_DEVICE static void run(Ctx& ctx, const FwdArgs& args, const FwdItem& item) {
        if constexpr (requires { ctx.query_stream(); })
            if (ctx.cfg().algorithm.pipeline == Pipeline::ws) {
                fmha_fwd_ws(ctx, args, OneItem{item});
                return;
            }
        fmha_fwd(ctx, args, item);
    }
};

} // namespace fmha::kernels
