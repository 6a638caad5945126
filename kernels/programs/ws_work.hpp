#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/programs/ws_keys.hpp"

namespace fmha::kernels {

/// One item, as the feed and the teams of a block know it.
template <HasTeams Args>
struct WsWork {
    using Keys = typename WsKeysOf<Args>::Type;

    FwdItem item;
    Entry entry;
    HeadRows heads;
    QueryRows rows; ///< of each head
    std::int64_t hk = 0;
    Keys in;
    KeyTiles tiles;
    int count = 0; ///< of key tiles

    /// There is one more step than tiles: step t brings the keys of tile t and the values of tile t − 1.
    FMHA_DEVICE int steps() const { return count > 0 ? count + 1 : 0; }
    FMHA_DEVICE bool exists() const { return rows.count > 0; }

    template <class Ctx>
    FMHA_DEVICE static WsWork of(Ctx& ctx, const Args& args, const FwdItem& item, bool lengths_equal) {
        const auto& cfg = ctx.cfg();
        const Tile& tile = cfg.algorithm.tile;
        WsWork work;
        work.heads = HeadRows::of(cfg, args);
        work.item = item;
        work.item.h *= work.heads.heads(tile.m0);
        work.entry = Keys::entry(ctx, args, item.b, lengths_equal);
        work.rows = QueryRows::of(tile, work.entry.seqlen_q, item.q_tile, work.heads);
        if (cfg.signature.skip_min_seqlen_q && args.shape.min_seqlen_q > 0 &&
            work.entry.seqlen_q <= args.shape.min_seqlen_q)
            work.rows.count = 0;
        if (!work.exists()) return work;
        // Heads are 32-bit numbers: a division of 64 bits costs time, and the feed more registers than it has.
        Shape shape = args.shape;
        shape.nhead_q = static_cast<std::uint32_t>(shape.nhead_q);
        shape.nhead_k = static_cast<std::uint32_t>(shape.nhead_k);
        work.hk = ctx.kv_head(shape, work.item.h);
        work.in = Keys::of(ctx, args, work.entry, work.item, work.hk);
        work.in.q.heads = work.heads;
        const Mask mask = ctx.mask(Mask::of(args.mask, cfg.signature.mask, cfg.signature.has_sink,
                                            work.entry.seqlen_q, work.entry.seqlen_k));
        work.tiles = work.in.tiles(mask, work.rows, tile.n0);
        work.count = work.tiles.count();
        return work;
    }
};

} // namespace fmha::kernels
