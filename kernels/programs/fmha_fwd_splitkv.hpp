#pragma once

#include "kernels/programs/cache.hpp"
#include "kernels/programs/packed_heads.hpp"

namespace fmha::kernels {

/// The work of one block of split-KV's main stage: that of forward, over the keys of one split.
struct SplitItem {
    std::int64_t b = 0, h = 0, split = 0, q_tile = 0, v_tile = 0;
};
FMHA_FIELDS(SplitItem, b, h, split, q_tile, v_tile)

/// Where the partial results of one split go (S-3).
struct SplitResults {
    Matrix o, lse;

    FMHA_DEVICE static SplitResults of(const KernelConfig& cfg, const SplitKvArgs& args, const Entry& entry,
                                       std::int64_t b, std::int64_t partial_head) {
        const Granules granules = Granules::of(cfg);
        const Extent sq = Extent::of(entry.seqlen_q, granules.seqlen_q);
        const Extent dv = Extent::of(args.shape.hdim_v, granules.hdim_v);
        return {matrix_of(args.partials.o_acc, b, partial_head, entry.start_q, sq, dv),
                matrix_of(args.partials.lse_acc, b, partial_head, entry.start_q, sq, {1, 1, 1})};
    }
    /// Of rows of several heads, whose partial results are `distance` heads apart.
    FMHA_DEVICE SplitResults across(const HeadRows& heads, std::int64_t distance) const {
        SplitResults to = *this;
        for (Matrix* m : {&to.o, &to.lse}) {
            m->heads = heads;
            m->tensor.head_stride *= distance;
        }
        return to;
    }
};

/// The main stage of split-KV: normalised O and LSE of the keys that one split owns (S-1, S-2), without sink logit and output
/// scale, which combining adds. With ALiBi the logits of every split are relative to the same β0 of their row (`Alibi`), and
/// lse_acc contains β0: it is S-2's, in natural units, for every stage that combines it. Its rounding, 2^-24·|lse|, is a part of the
/// limits of the combined output.
template <class Ctx>
FMHA_DEVICE void fmha_fwd_splitkv(Ctx& ctx, const SplitKvArgs& args, const SplitItem& split) {
    const auto& cfg = ctx.cfg();
    const Tile& tile = cfg.algorithm.tile;
    const PackedHeads packed = PackedHeads::of(cfg, args, false);
    const HeadRows heads = HeadRows::of(cfg, args);
    const FwdItem item{split.b, packed.first(split.h) * heads.heads(tile.m0), split.q_tile, split.v_tile};
    const Entry entry = ctx.cached_entry(args.shape, args.lengths, args.place, item.b);
    const QueryRows rows = QueryRows::of(tile, packed.rows(entry.seqlen_q), item.q_tile, heads);
    if (rows.count <= 0) return;

    const std::int64_t hk = ctx.kv_head(args.shape, item.h);
    Scoring scoring = Scoring::of(ctx, args, entry, item, hk);
    scoring.sink = ctx.partial_sink(scoring.sink);
    if (heads.any()) scoring.sinks = nullptr;
    scoring.sink_top = ctx.to_base2(scoring.sink);
    KeyRange keys = ctx.split_keys(args.partials, split.split, entry.seqlen_k);
    const std::int64_t seen = packed.seen(scoring.mask, entry.seqlen_k);
    if (packed.any()) keys = {keys.begin < seen ? keys.begin : seen, keys.end < seen ? keys.end : seen};
    scoring.mask = packed.in_tile(scoring.mask, entry.seqlen_k);
    CacheMatrices in = CacheMatrices::of(ctx, args, entry, item, hk, keys);
    if (packed.any()) in.pack(ctx, packed.heads);
    if (heads.any()) in.q.heads = heads;
    attend(
        ctx, args, item, in, scoring, in.tiles(scoring.mask, rows, tile.n0),
        [&] {
            const std::int64_t head = ctx.partial_head(args, item.h, split.split);
            const SplitResults to = SplitResults::of(cfg, args, entry, item.b, head);
            const auto distance_of = [&](std::int64_t sharing) -> std::int64_t {
                const auto between = static_cast<std::int32_t>(
                    ctx.partial_head(args, item.h + sharing - 1, split.split) - head);
                return between / (static_cast<std::int32_t>(sharing) - 1);
            };
            const std::int64_t sharing = heads.heads(tile.m0);
            if (heads.any()) return to.across(ctx.stored_rows(heads), sharing > 1 ? distance_of(sharing) : 1);
            if (!packed.any()) return to;
            const std::int64_t distance = distance_of(packed.heads);
            return SplitResults{ctx.across_heads(to.o, packed.heads, distance),
                                ctx.across_heads(to.lse, packed.heads, distance)};
        },
        1.0F);
}

/// The blocks of one launch, numbered from 0: those of forward, or of packed heads, for every split of a head.
struct SplitGrid {
    PackedGrid heads;
    std::int64_t splits;

    FMHA_DEVICE constexpr SplitGrid(const KernelConfig& config, const SplitKvArgs& args)
        : heads(config, args, PackedHeads::of(config, args, false)), splits(args.partials.num_splits) {}

    FMHA_DEVICE constexpr std::int64_t size() const { return heads.size() * splits; }
    FMHA_DEVICE constexpr SplitItem operator[](std::int64_t n) const {
        const std::int64_t of_head = heads.q_tiles * heads.v_tiles;
        const Divided tile = Divided::of(n, of_head), split = Divided::of(tile.quotient, splits);
        const FwdItem item = heads[split.quotient * of_head + tile.rest];
        return {item.b, item.h, split.rest, item.q_tile, item.v_tile};
    }
};

template <>
struct Program<KernelFamily::fwd_splitkv> {
    using Args = SplitKvArgs;
    using Item = SplitItem;
    using Grid = SplitGrid;
    static constexpr bool has_products = true;

    static std::int64_t rows(const KernelConfig& config, const SplitKvArgs& args, const SplitItem& item) {
        const Entry entry = Entry::of_queries(args.shape, args.lengths, item.b);
        const std::int64_t rows = PackedHeads::of(config, args, false).rows(entry.seqlen_q);
        return QueryRows::in_tile(config, args, rows, item.q_tile);
    }
    template <class Ctx>
    FMHA_DEVICE static void run(Ctx& ctx, const SplitKvArgs& args, const SplitItem& item) {
        fmha_fwd_splitkv(ctx, args, item);
    }
};

} // namespace fmha::kernels
