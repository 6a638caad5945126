#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/programs/ws_items.hpp"
#include "kernels/programs/ws_sums.hpp"
#include "kernels/programs/ws_weights.hpp"
#include "kernels/programs/ws_work.hpp"

namespace fmha::kernels {

/// Whether a team may see fewer tiles than its block, or have no row at all: where teams are three, or a tile has no more keys than a team
/// has rows. It gives the others back unread.
template <class Ctx>
FMHA_DEVICE bool may_see_fewer(Ctx& ctx) {
    const Tile& tile = ctx.cfg().algorithm.tile;
    return tile.m0 > ctx.team_rows() && (tile.n0 <= ctx.team_rows() || tile.m0 > 2 * ctx.team_rows());
}

/// The tiles of an item that a team with rows from `row0` on sees.
struct TeamTiles {
    int own = 0;           ///< the first so many
    KeyTiles::Range plain; ///< those of which no row hides a key

    template <class Ctx, class Args>
    FMHA_DEVICE static TeamTiles of(Ctx& ctx, const WsWork<Args>& work, const Mask& of_keys,
                                    std::int64_t row0) {
        const Tile& tile = ctx.cfg().algorithm.tile;
        const MaskClass hides = ctx.cfg().signature.mask;
        const Mask mask = work.in.in_rows(of_keys);
        TeamTiles seen;
        seen.own = work.count;
        if (may_see_fewer(ctx) && hides != MaskClass::none)
            seen.own = work.tiles.count_until(mask, row0 + ctx.team_rows() - 1, tile.n0);
        if (may_see_fewer(ctx) && ctx.team_row() >= work.rows.count) seen.own = 0;
        seen.plain = work.tiles.seen_whole(mask, row0, work.heads.of_head(ctx.team_rows()), work.in.end_row(),
                                           tile.n0, hides);
        return seen;
    }
};

/// The sum of a tile joins the output, which shrinks as the tile before wanted; the next one will by `shrink`.
template <class Ctx, class Output, class Addend, class Rows>
FMHA_DEVICE void add_tile(Ctx& ctx, Output& out, const Addend& addend, Rows& before, const Rows& shrink) {
    ctx.scale_and_add(out, before, addend);
    ctx.map_rows(before, shrink, shrink, [](float f, float) { return f; });
}

/// Forward attention (F-1 … F-10), of keys one after another or in pages, by a block of teams, each of which owns some of the m0
/// query rows of an item, and a feed that copies what they multiply. A team takes one tile of keys at a time. While it turns the
/// scores of a tile into weights, its product of the weights and values of the tile before runs, and the products of other teams.
///
/// The feed runs `fills` for every step of every item in order, held up by stages in use only: it copies the first tiles of an item while the
/// teams are at the end of the one before.
template <class Ctx, HasTeams Args, class Items>
FMHA_DEVICE void fmha_fwd_ws(Ctx& ctx, const Args& args, const Items& items) {
    const auto query = ctx.query_stream();
    const auto key = ctx.key_stream();
    const auto value = ctx.value_stream();

    const auto work_of = [&](const FwdItem& item) { return WsWork<Args>::of(ctx, args, item); };
    const auto fill = [&](const auto& stream, const StagedTile& tile) {
        ctx.fill_stage(stream, tile.matrix, tile.place, tile.row, 0);
    };
    const auto fills = [&](const WsWork<Args>& work, int step) {
        const FwdItem& item = work.item;
        if (step < work.count) fill(key, work.in.staged_keys(ctx, work.tiles.at(step), items.of_page()));
        if (step == 0) fill(query, {work.in.q, {item.b, item.h, work.entry.start_q}, work.rows.first});
        if (step > 0) fill(value, work.in.staged_values(ctx, work.tiles.at(step - 1), items.of_page()));
    };
    const auto transposes = [&](const WsWork<Args>&, int step) {
        if (step > 0) ctx.transpose_stage(value);
    };
    const auto team = [&](const WsWork<Args>& work) {
        const auto& cfg = ctx.cfg();
        const Tile& tile = cfg.algorithm.tile;
        const auto& [item, entry, heads, rows, hk, in, tiles, count] = work;
        const Scoring scoring = Scoring::of(ctx, args, entry, item, hk);
        const std::int64_t row0 = rows.first + ctx.team_row();
        auto scores = ctx.scores();
        auto out = ctx.output();
        auto top = ctx.rows(), total = ctx.rows(), shrink = ctx.rows();
        ctx.fill(out, 0.0F);
        // Of products with few bits a sum is one of a tile. It joins the output when that has shrunk as the tile before wanted: at
        // once, or late, while the next scores are multiplied and a team has nothing else to do. With V by column that gains nothing,
        // and beside a generic mask registers do not do.
        const bool apart = adds_tiles_apart(cfg.signature.data_type);
        const bool late = apart && CarriedWeights::serve(cfg) && cfg.signature.v_layout == VLayout::row;
        auto addend = ctx.addend();
        auto shrink_before = ctx.rows(), reference = ctx.rows();
        if (apart) ctx.fill(shrink_before, 1.0F);
        if (late) ctx.fill(addend, 0.0F);
        begin_rows(ctx, scoring, top, total, row0);
        ctx.split_rows(total); // lanes exchange their sums once, not in every tile

        // Where a factor above 0 is all that lies between products and logits, tiles without a mask have maxima of products; with
        // another factor all tiles are taken for masked ones.
        const bool of_products = scales_alone(cfg.signature);
        const float factor = ctx.to_base2(ctx.scale(args.score) * scoring.descale.q * scoring.descale.k);
        const bool carries = CarriedWeights::serve(cfg);
        const auto carried = carries ? CarriedWeights::of(ctx, scoring, factor) : CarriedWeights();
        if (carries) carried.begin(ctx, top, reference, total);
        const auto weigh = [&]<Masking masking>(int step) FMHA_INLINE_LAMBDA {
            ctx.visit(work.item, work.tiles.at(step));
            // Of a large output hardly a row is rescaled after the first tiles; a small one costs less than the question.
            const float slack = tile.n1 > 128 ? 8.0F : 0.0F;
            // Asked of the configuration: compilers inline this as it is without what is not so.
            const Signature& has = ctx.cfg().signature;
            if (CarriedWeights::serve(ctx.cfg())) {
                carried.template weigh<masking>(ctx, scores, args, scoring, work.in.bias, row0,
                                                work.in.span(work.tiles.at(step), tile.n0), top, reference,
                                                total, shrink);
                return;
            }
            if (masking == Masking::off && scales_alone(has)) {
                products_to_weights(ctx, scores, factor, top, total, shrink, slack);
                return;
            }
            scores_to_logits<masking>(ctx, scores, args, scoring, work.in.bias, row0,
                                      work.in.span(work.tiles.at(step), tile.n0));
            logits_to_weights(ctx, scores, top, total, shrink, slack);
        };
        const TeamTiles seen = TeamTiles::of(ctx, work, scoring.mask, row0);
        const int own = seen.own;
        if (count > 0) ctx.take(query);
        if (own == 0 && count > 0) ctx.give(query);
        if (own > 0) {
            ctx.take(key);
            ctx.start(scores, query, key);
            ctx.finish(scores, 0);
            ctx.give(key);
            ctx.give(query, own == 1); // the feed may bring those of the next item
            weigh.template operator()<Masking::if_needed>(0);
            auto weights = ctx.narrow(scores, carries);
            const auto start_values = [&] {
                if (apart)
                    ctx.start(addend, weights, value, false);
                else
                    ctx.start(out, weights, value);
            };
            const auto finish_values = [&] {
                if (apart)
                    ctx.finish(addend, 0);
                else
                    ctx.finish(out, 0);
            };
            const auto next_tile = [&]<Masking masking>(int step) FMHA_INLINE_LAMBDA {
                ctx.take(key);
                ctx.turn();
                ctx.start(scores, query, key);
                ctx.take(value);
                if (late) add_tile(ctx, out, addend, shrink_before, shrink);
                start_values();
                ctx.pass();
                ctx.finish(scores, 1);
                ctx.give(key);
                ctx.give(query, step + 1 == own);
                weigh.template operator()<masking>(step);
                ctx.settle(scores); // while the product of the values runs
                // Both products and a softmax of products alone take all registers there are: a mask or a bias would spill.
                if (apart && carries && of_products && masking == Masking::off) ctx.hold_behind(total);
                finish_values();
                ctx.give(value);
                if (apart) {
                    if (!late) add_tile(ctx, out, addend, shrink_before, shrink);
                } else {
                    ctx.scale_rows(out, shrink);
                }
                weights = ctx.narrow(scores, carries);
            };
            // A branch between start and finish of a product would end it, hence a tile with a mask and one without. Those without
            // follow each other, with nothing to ask between them.
            const int plain_end = of_products && !(carries ? carried.in_products : factor > 0.0F) ? 0
                                  : seen.plain.end < own ? seen.plain.end
                                                         : own;
            FMHA_NO_UNROLL
            for (int step = 1; step < own;) {
                const int end = seen.plain.has(step) ? plain_end : step;
                FMHA_NO_UNROLL
                for (; step < end; ++step) next_tile.template operator()<Masking::off>(step);
                if (step < own) next_tile.template operator()<Masking::always>(step++);
            }
            if (late) add_tile(ctx, out, addend, shrink_before, shrink);
            ctx.take(value);
            start_values();
            finish_values();
            ctx.give(value);
            if (apart) ctx.scale_and_add(out, shrink_before, addend);
        }
        const bool gives_back = may_see_fewer(ctx);
        FMHA_NO_UNROLL
        for (int step = own; gives_back && step < count; ++step) {
            ctx.take(key);
            ctx.give(key);
            if (step > 0) ctx.turn();
            if (step > 0) ctx.pass();
            ctx.take(value);
            ctx.give(value);
        }
        ctx.join_rows(total);
        auto& divisor = carries ? reference : total;
        if (carries) carried.end(ctx, scoring, top, total, divisor);
        auto to = FwdResults::of(cfg, args, entry, item.b, item.h);
        to.o.heads = to.lse.heads = ctx.stored_rows(heads);
        store_rows(ctx, to, scoring, out, top, total, divisor, shrink, row0, 0, true, args.score.scale_o);
    };
    ctx.run(items, work_of, fills, transposes, team);
}

} // namespace fmha::kernels
