#pragma once

#include "kernels/programs/cache.hpp"
#include "kernels/programs/fmha_fwd.hpp"

namespace fmha::kernels {

/// Forward attention over a page pool (section 17). Blocks are those of forward.
template <class Ctx>
FMHA_DEVICE void fmha_fwd_pagedkv(Ctx& ctx, const PagedKvArgs& args, const FwdItem& item) {
    const auto& cfg = ctx.cfg();
    const Tile& tile = cfg.algorithm.tile;
    const Entry entry = ctx.cached_entry(args.shape, args.lengths, args.place, item.b);
    const QueryRows rows = QueryRows::of(tile, entry.seqlen_q, item.q_tile);
    if (rows.count <= 0) return;

    const std::int64_t hk = ctx.kv_head(args.shape, item.h);
    const CacheMatrices in = CacheMatrices::of(cfg, args, entry, item, hk, {0, entry.seqlen_k});
    const Scoring scoring = Scoring::of(ctx, args, entry, item, hk);
    attend(
        ctx, args, item, in, scoring, in.tiles(scoring.mask, rows, tile.n0),
        [&] { return FwdResults::of(cfg, args, entry, item.b, item.h); }, args.score.scale_o);
}

template <>
struct Program<KernelFamily::fwd_pagedkv> {
    using Args = PagedKvArgs;
    using Item = FwdItem;
    using Grid = FwdGrid;
    static constexpr bool has_products = true;

    static std::int64_t rows(const KernelConfig& config, const PagedKvArgs& args, const FwdItem& item) {
        const Entry entry = Entry::of_queries(args.shape, args.lengths, item.b);
        return QueryRows::of(config.algorithm.tile, entry.seqlen_q, item.q_tile).count;
    }
    template <class Ctx>
    FMHA_DEVICE static void run(Ctx& ctx, const PagedKvArgs& args, const FwdItem& item) {
        fmha_fwd_pagedkv(ctx, args, item);
    }
};

} // namespace fmha::kernels
