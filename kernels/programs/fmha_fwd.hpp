#pragma once

#include "kernels/programs/decisions.hpp"

namespace fmha::kernels {

inline constexpr float never = -__builtin_inff(); ///< logit of a key that is not seen
inline constexpr float ln2 = 0.693147180559945309F;

/// What one block computes: query rows [q_tile·m0, …) and output channels [v_tile·n1, …) of one (entry,
/// head).
struct FwdItem {
    std::int64_t b = 0, h = 0, q_tile = 0, v_tile = 0;
};

/// Forward attention (F-1 … F-10). One block owns m0 query rows of one (entry, head) and n1 channels of the
/// output, and streams the keys past them. Its tiles:
///
/// - query (m0, hdim_q), an operand
/// - scores (m0, n0), an accumulator: logits of one key tile, then weights exp2(score − top)
/// - top (m0), a row vector: the running maximum, which starts at the sink logit or at −∞
/// - total (m0), a row vector: the running sum of weights, which starts with the sink's share
/// - out (m0, n1), an accumulator: Σ weight · value, not yet divided by total
///
/// Logits carry a factor log2 e, so that every exponential is exp2; only the stored LSE returns to natural
/// units. The operations of the context are described in kernels/programs/README.md.
template <class Ctx>
FMHA_DEVICE void fmha_fwd(Ctx& ctx, const FwdArgs& args, const FwdItem& item) {
    const auto& cfg = ctx.cfg();
    const auto& has = cfg.signature;
    const Tile& tile = cfg.algorithm.tile;

    const Entry entry = ctx.entry(args, item.b);
    const std::int64_t row0 = item.q_tile * tile.m0;
    const std::int64_t rows = entry.seqlen_q - row0 < tile.m0 ? entry.seqlen_q - row0 : tile.m0;
    if (rows <= 0) return;
    if (has.skip_min_seqlen_q && args.shape.min_seqlen_q > 0 && entry.seqlen_q <= args.shape.min_seqlen_q)
        return;

    const std::int64_t hk = ctx.kv_head(args, item.h);
    const FwdMatrices in = FwdMatrices::of(cfg, args, entry, item.b, item.h, hk);
    const Descales descale = Descales::of(cfg, args, item.b, item.h, hk);
    const std::int64_t channel0 = item.v_tile * tile.n1;
    const bool owns_rows = item.v_tile == 0; // the first column block stores what exists once per row

    const Mask mask = ctx.mask(Mask::of(args.mask, has.mask, has.has_sink, entry.seqlen_q, entry.seqlen_k));
    const KeyTiles tiles = KeyTiles::of(mask, row0, rows, in.k.rows.read, tile.n0);
    const Alibi alibi =
        has.bias == BiasType::alibi
            ? Alibi::of(args.mask, ctx.alibi_slope(args, item.b, item.h), entry.seqlen_q, entry.seqlen_k)
            : Alibi{};
    const Dropout dropout = Dropout::of(args, has.has_dropout, item.b, item.h);
    const float sink =
        has.has_sink_logit && args.score.sink_logit != nullptr ? args.score.sink_logit[item.h] : never;
    const float sink_top = ctx.to_base2(sink);

    auto query = ctx.query();
    auto key = ctx.key();
    auto value = ctx.value();
    auto scores = ctx.scores();
    auto out = ctx.output();
    auto top = ctx.rows(), total = ctx.rows(), shrink = ctx.rows();

    ctx.load(query, in.q, row0, 0);
    ctx.fill(out, 0.0F);
    ctx.fill(top, sink_top);
    ctx.fill(total, ctx.sink_mass(sink));
    ctx.prefetch(key, in.k, tiles.first() * tile.n0, 0);
    ctx.commit();

    for (std::int64_t t = tiles.first(); t < tiles.end; t = tiles.next(t)) {
        const std::int64_t key0 = t * tile.n0;
        ctx.visit(item, t);
        ctx.prefetch(value, in.v, key0, channel0);
        ctx.commit();

        ctx.wait(1);            // the keys are there, the values may still be on their way
        ctx.fill(scores, 0.0F); // F-1
        FMHA_UNROLL
        for (int step = 0; step < ctx.steps(tile.k0max, in.q.cols.read, tile.k0); ++step) {
            ctx.load_transposed(key, in.k, key0, step * tile.k0);
            ctx.product(scores, query, step * tile.k0, key);
        }
        if (tiles.next(t) < tiles.end) ctx.prefetch(key, in.k, tiles.next(t) * tile.n0, 0);
        ctx.commit();

        // F-2, F-3: descales are constant within a tile.
        const float scale = ctx.scale(args) * descale.q_at(args, row0) * descale.k_at(args, key0);
        if (has.has_logits_soft_cap)
            ctx.soft_cap(scores, scale / args.score.logits_soft_cap,
                         ctx.to_base2(args.score.logits_soft_cap));
        else
            ctx.map(scores, [f = ctx.to_base2(scale)](float s, int, int) { return s * f; });

        // F-4
        if (has.bias == BiasType::elementwise) ctx.add_bias(scores, in.bias, row0, key0);
        if (has.bias == BiasType::alibi)
            ctx.map(scores, [&ctx, at = TileAlibi::of(alibi, row0, key0)](float s, int r, int c) {
                return s + ctx.to_base2(at.at(r, c));
            });

        // F-5: only tiles that an edge of the mask or the end of the keys crosses have hidden elements.
        const TileMask seen = TileMask::of(mask, row0, key0, in.k.rows.read);
        if (!seen.sees_all(tile.m0, tile.n0))
            ctx.map(scores, [seen, kernel = has.mask](float s, int r, int c) {
                return seen.sees(r, c, kernel) ? s : never;
            });

        // F-6: shrink = exp2(old top − new top). A row that has seen nothing yet keeps top = −∞, shrink = 1
        // and weights of 0, never NaN.
        ctx.raise_to_row_max(top, shrink, scores);
        ctx.exp2_minus(scores, top);
        ctx.scale_rows(total, shrink);
        ctx.add_row_sums(total, scores);
        ctx.scale_rows(out, shrink);

        // F-9 after the sum, because the normaliser uses undropped weights (D-3).
        if (dropout.on) {
            auto random = ctx.random_bytes();
            ctx.generate(random, dropout.squares, row0, key0);
            ctx.drop(scores, random, dropout.threshold);
            if (args.randval.present() && owns_rows) ctx.store(in.randval, random, row0, key0);
        }

        auto weights = ctx.narrow(scores); // F-10
        ctx.wait(1);                       // the values are there
        FMHA_UNROLL
        for (int step = 0; step < ctx.steps(tile.n0, in.v.rows.read - key0, tile.k1); ++step) {
            ctx.load(value, in.v, key0 + step * tile.k1, channel0);
            ctx.product(out, weights, step * tile.k1, value, descale.v_at(args, key0));
        }
    }

    const FwdResults to = FwdResults::of(cfg, args, entry, item.b, item.h);
    if (has.has_lse && args.lse.present() && owns_rows) {
        auto lse = ctx.rows();
        ctx.map_rows(lse, top, total, [&ctx, sink, sink_top](float m, float sum) {
            // A row that sees no key returns the sink exactly, hence no round trip through base 2.
            return sum > 0.0F ? ctx.lse(m == sink_top ? sink : m * ln2, ctx.log(sum)) : never;
        });
        ctx.store(to.lse, lse, row0);
    }
    const float output_scale =
        args.score.scale_o * descale.v * ctx.dropout_rescale(dropout) * ctx.weight_unit();
    ctx.map_rows(shrink, total, total,
                 [output_scale](float, float sum) { return sum > 0.0F ? output_scale / sum : 0.0F; });
    ctx.scale_rows(out, shrink);
    ctx.store(to.o, out, row0, channel0);
}

} // namespace fmha::kernels
