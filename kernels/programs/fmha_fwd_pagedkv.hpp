#pragma once

#include "kernels/programs/cache.hpp"
#include "kernels/programs/fmha_fwd_ws.hpp"
#include "kernels/programs/packed_heads.hpp"

namespace fmha::kernels {

/// Forward attention over a page pool (section 17). Blocks are those of forward, or of packed heads; a few rows of heads share tiles.
template <class Ctx>
FMHA_DEVICE void fmha_fwd_pagedkv(Ctx& ctx, const PagedKvArgs& args, const FwdItem& item) {
    const auto& cfg = ctx.cfg();
    const Tile& tile = cfg.algorithm.tile;
    const PackedHeads packed = PackedHeads::of(cfg, args, true);
    const HeadRows heads = HeadRows::of(cfg, args);
    const Entry entry = ctx.cached_entry(args.shape, args.lengths, args.place, item.b);
    const QueryRows rows = QueryRows::of(tile, packed.rows(entry.seqlen_q), item.q_tile, heads);
    if (rows.count <= 0) return;

    const FwdItem of_head{item.b, packed.first(item.h) * heads.heads(tile.m0), item.q_tile, item.v_tile};
    const std::int64_t hk = ctx.kv_head(args.shape, of_head.h);
    Scoring scoring = Scoring::of(ctx, args, entry, of_head, hk);
    const std::int64_t seen = packed.seen(scoring.mask, entry.seqlen_k);
    scoring.mask = packed.in_tile(scoring.mask, entry.seqlen_k);
    CacheMatrices in = CacheMatrices::of(ctx, args, entry, of_head, hk, {0, seen});
    if (packed.any()) in.pack(ctx, packed.heads);
    if (heads.any()) in.q.heads = heads;
    attend(
        ctx, args, of_head, in, scoring, in.tiles(scoring.mask, rows, tile.n0),
        [&] {
            FwdResults to = FwdResults::of(cfg, args, entry, of_head.b, of_head.h);
            if (heads.any()) to.o.heads = to.lse.heads = ctx.stored_rows(heads);
            if (!packed.any()) return to;
            return FwdResults{ctx.across_heads(to.o, packed.heads, 1),
                              ctx.across_heads(to.lse, packed.heads, 1)};
        },
        args.score.scale_o);
}

template <>
struct Program<KernelFamily::fwd_pagedkv> {
    using Args = PagedKvArgs;
    using Item = FwdItem;
    using Grid = WholeRowGrid<PagedKvArgs>;
    static constexpr bool has_products = true;

    static std::int64_t rows(const KernelConfig& config, const PagedKvArgs& args, const FwdItem& item) {
        const Entry entry = Entry::of_queries(args.shape, args.lengths, item.b);
        const std::int64_t rows = PackedHeads::of(config, args, true).rows(entry.seqlen_q);
        return QueryRows::in_tile(config, args, rows, item.q_tile);
    }
    template <class Ctx>
    FMHA_DEVICE static void run(Ctx& ctx, const PagedKvArgs& args, const FwdItem& item) {
        if constexpr (requires { ctx.query_stream(); })
            if (ctx.cfg().algorithm.pipeline == Pipeline::ws) {
                fmha_fwd_ws(ctx, args,
                            OneItem{item, Divisor(static_cast<std::uint32_t>(args.place.page_size))});
                return;
            }
        fmha_fwd_pagedkv(ctx, args, item);
    }
};

} // namespace fmha::kernels
