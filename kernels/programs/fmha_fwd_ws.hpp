#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/programs/matrix_place.hpp"

namespace fmha::kernels {

/// Forward attention (F-1 … F-10) by a block of teams, each of which owns some of its m0 query rows, and a feed that copies what they
/// multiply. A team takes one tile of keys at a time. While it turns the scores of a tile into weights, its product of the
/// weights and values of the tile before runs, and the products of other teams.
///
/// The feed runs `fills` for every step in order, held up by stages in use only: step t brings the keys of tile t and the values of
/// tile t − 1. There is one more step than tiles.
template <class Ctx>
FMHA_DEVICE void fmha_fwd_ws(Ctx& ctx, const FwdArgs& args, const FwdItem& item) {
    const auto& cfg = ctx.cfg();
    const Tile& tile = cfg.algorithm.tile;
    const Entry entry = ctx.entry(args.shape, args.lengths, item.b);
    const QueryRows rows = QueryRows::of(tile, entry.seqlen_q, item.q_tile);
    if (rows.count <= 0) return;
    if (cfg.signature.skip_min_seqlen_q && args.shape.min_seqlen_q > 0 &&
        entry.seqlen_q <= args.shape.min_seqlen_q)
        return;

    const std::int64_t hk = ctx.kv_head(args.shape, item.h), channel0 = item.v_tile * tile.n1;
    const FwdMatrices in = FwdMatrices::of(cfg, args, entry, item.b, item.h, hk);
    const Mask mask = ctx.mask(
        Mask::of(args.mask, cfg.signature.mask, cfg.signature.has_sink, entry.seqlen_q, entry.seqlen_k));
    const KeyTiles tiles = KeyTiles::of(mask, rows.first, rows.count, in.k.rows.read, tile.n0);
    const int count = tiles.count();
    const auto query = ctx.query_stream();
    const auto key = ctx.key_stream();
    const auto value = ctx.value_stream();

    const MatrixPlace queries{item.b, item.h, entry.start_q}, keys{item.b, hk, entry.start_k};
    const auto fills = [&](int step) {
        if (step == 0) ctx.fill_stage(query, in.q, queries, rows.first, 0);
        if (step < count) ctx.fill_stage(key, in.k, keys, tiles.at(step) * tile.n0, 0);
        if (step > 0) ctx.fill_stage(value, in.v, keys, tiles.at(step - 1) * tile.n0, channel0);
    };
    const auto team = [&] {
        const Scoring scoring = Scoring::of(ctx, args, entry, item, hk);
        const std::int64_t row0 = rows.first + ctx.team_row();
        auto scores = ctx.scores();
        auto out = ctx.output();
        auto top = ctx.rows(), total = ctx.rows(), shrink = ctx.rows();
        ctx.fill(out, 0.0F);
        begin_rows(ctx, scoring, top, total, row0);

        const auto weigh = [&]<Masking masking>(int step) {
            ctx.visit(item, tiles.at(step));
            scores_to_logits<masking>(ctx, scores, args, scoring, in.bias, row0,
                                      in.tile(ctx, tiles.at(step), true));
            logits_to_weights(ctx, scores, top, total, shrink);
        };
        if (count > 0) {
            ctx.take(query);
            ctx.take(key);
            ctx.start(scores, query, key);
            ctx.finish(scores, 0);
            ctx.give(key);
            weigh.template operator()<Masking::if_needed>(0);
            auto weights = ctx.narrow(scores);
            const auto next_tile = [&]<Masking masking>(int step) {
                ctx.take(key);
                ctx.turn();
                ctx.start(scores, query, key);
                ctx.take(value);
                ctx.start(out, weights, value);
                ctx.pass();
                ctx.finish(scores, 1);
                ctx.give(key);
                weigh.template operator()<masking>(step);
                ctx.settle(scores); // while the product of the values runs
                ctx.finish(out, 0);
                ctx.give(value);
                ctx.scale_rows(out, shrink);
                weights = ctx.narrow(scores);
            };
            // A branch between start and finish of a product would end it, hence a tile with a mask and one without.
            FMHA_NO_UNROLL
            for (int step = 1; step < count; ++step) {
                const TileMask seen =
                    TileMask::of(scoring.mask, row0, tiles.at(step) * tile.n0, in.k.rows.read);
                if (seen.sees_all(ctx.team_rows(), tile.n0))
                    next_tile.template operator()<Masking::off>(step);
                else
                    next_tile.template operator()<Masking::always>(step);
            }
            ctx.take(value);
            ctx.start(out, weights, value);
            ctx.finish(out, 0);
            ctx.give(value);
        }
        const auto to = FwdResults::of(cfg, args, entry, item.b, item.h);
        store_rows(ctx, to, scoring, out, top, total, shrink, row0, channel0, item.v_tile == 0,
                   args.score.scale_o);
    };
    ctx.run(count > 0 ? count + 1 : 0, fills, team);
}

} // namespace fmha::kernels
