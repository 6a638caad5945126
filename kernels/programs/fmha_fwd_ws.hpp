#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/programs/ws_items.hpp"
#include "kernels/programs/ws_sums.hpp"
#include "kernels/programs/ws_weights.hpp"
#include "kernels/programs/ws_work.hpp"

/// The warp-specialised forward program. `WsFeed` is the producer of a block, a team is a consumer: `TeamSoftmax` makes weights of a tile's scores,
/// `TeamOutput` multiplies and adds values, and `fmha_fwd_ws` lets the two overlap.
namespace fmha::kernels {

/// The feed of a block. It runs `fills` for every step of every item in order, held up by stages in use only: it copies the first tiles of an
/// item while the teams are at the end of the one before.
template <class Ctx, HasTeams Args>
struct WsFeed {
    Ctx& ctx;
    const Divisor& of_page; ///< of keys in a cache

    /// Step t brings the keys of tile t and the values of tile t − 1.
    FMHA_DEVICE void fills(const WsWork<Args>& work, int step) const {
        const FwdItem& item = work.item;
        if (step < work.count) fill(ctx.key_stream(), work.in.staged_keys(ctx, work.tiles.at(step), of_page));
        if (step == 0)
            fill(ctx.query_stream(), {work.in.q, {item.b, item.h, work.entry.start_q}, work.rows.first});
        if (step > 0) fill(ctx.value_stream(), work.in.staged_values(ctx, work.tiles.at(step - 1), of_page));
    }
    /// Where products need V with lines of the other axis.
    FMHA_DEVICE void transposes(int step) const {
        if (step > 0) ctx.transpose_stage(ctx.value_stream());
    }

  private:
    template <class Stream>
    FMHA_DEVICE void fill(const Stream& stream, const StagedTile& tile) const {
        ctx.fill_stage(stream, tile.matrix, tile.place, tile.row, 0);
    }
};

/// Whether a team may see fewer tiles than its block, or have no row at all: where teams are three, or a tile has no more keys than a team
/// has rows. It gives the others back unread.
template <class Ctx>
FMHA_DEVICE bool may_see_fewer(Ctx& ctx) {
    const Tile& tile = ctx.cfg().algorithm.tile;
    return tile.m0 > ctx.team_rows() && (tile.n0 <= ctx.team_rows() || tile.m0 > 2 * ctx.team_rows());
}

/// The tiles of an item that a team with rows from `row0` on sees: [first, end), none where first = end.
struct TeamTiles {
    int first = 0;
    int end = 0;
    KeyTiles::Range plain; ///< those of which no row hides a key

    template <class Ctx, class Args>
    FMHA_DEVICE static TeamTiles of(Ctx& ctx, const WsWork<Args>& work, const Mask& of_keys,
                                    std::int64_t row0) {
        const Tile& tile = ctx.cfg().algorithm.tile;
        const MaskClass hides = ctx.cfg().signature.mask;
        const Mask mask = work.in.in_rows(of_keys);
        TeamTiles seen;
        seen.end = work.count;
        if (may_see_fewer(ctx) && hides != MaskClass::none)
            seen.end = work.tiles.count_until(mask, row0 + ctx.team_rows() - 1, tile.n0);
        if (may_see_fewer(ctx) && ctx.team_row() >= work.rows.count) seen.end = 0;
        if (may_see_fewer(ctx) && hides == MaskClass::generic) {
            const int before = work.tiles.count_before(mask, row0, tile.n0);
            seen.first = before < seen.end ? before : seen.end;
        }
        seen.plain = work.tiles.seen_whole(mask, row0, work.heads.of_head(ctx.team_rows()), work.in.end_row(),
                                           tile.n0, hides);
        return seen;
    }
};

/// The softmax of a team's rows (F-2 to F-6), one tile of scores after another.
template <HasTeams Args, class Rows>
struct TeamSoftmax {
    const Args& args;
    const Scoring& scoring;
    std::int64_t row0;
    Rows &top, &total;
    Rows& shrink;    ///< what the output has to shrink by before the part of the last tile is added
    Rows& reference; ///< of carried weights
    CarriedWeights carried{};
    float factor = 1.0F;      ///< from products to logits, where there is nothing else between them
    bool in_products = false; ///< that factor is above 0, so that maxima may be those of products

    /// Where there are no sink logits hardly anything is computed: that is asked once an item, ahead of all steps.
    template <class Ctx>
    FMHA_DEVICE void begin(Ctx& ctx) {
        if (args.score.sink_logit != nullptr)
            begin_with(ctx, scoring);
        else
            begin_with(ctx, scoring.without_sinks());
    }
    /// Whether tiles are weighed while products run, with `Masking::always` and `off`. Where products would have to be multiplied by a factor
    /// first, they are not: hardly a problem has a factor of 0 or below.
    FMHA_DEVICE bool beside_products(const KernelConfig& cfg) const {
        return !scales_alone(cfg.signature) || in_products;
    }
    /// The scores of tile `at` become weights.
    template <Masking masking, class Ctx, class Scores>
    FMHA_DEVICE void weigh(Ctx& ctx, Scores& scores, const Matrix& bias, const KeyTile& at) {
        // Of a large output hardly a row is rescaled after the first tiles; a small one costs less than the question.
        const Tile& tile = ctx.cfg().algorithm.tile;
        const float slack = tile.n1 > 128 ? 8.0F : 0.0F;
        const bool scales = scales_alone(ctx.cfg().signature);
        const auto is_whole = [&] { return scoring.shows_all(ctx.cfg(), row0, at.first, at.end); };
        if (!scales) {
            scores_to_logits<masking>(ctx, scores, args, scoring, bias, row0, at, is_whole);
        } else if (masking != Masking::off) {
            if (masking == Masking::if_needed && !in_products)
                ctx.map(scores, [f = factor](float s, int, int) { return s * f; });
            bias_and_mask<masking>(ctx, scores, scoring, {bias, at.first}, at.end, row0, at.first, is_whole);
        }
        if (CarriedWeights::serve(ctx.cfg()))
            carried.weigh(ctx, scores, top, reference, total, shrink);
        else if (scales)
            products_to_weights(ctx, scores, in_products ? factor : 1.0F, top, total, shrink, slack);
        else
            logits_to_weights(ctx, scores, top, total, shrink, slack);
    }
    /// After the last tile. Returns what the output is divided by.
    template <class Ctx>
    FMHA_DEVICE const Rows& end(Ctx& ctx) {
        ctx.join_rows(total);
        if (!CarriedWeights::serve(ctx.cfg())) return total;
        carried.end(ctx, scoring, top, total, reference);
        return reference;
    }

  private:
    template <class Ctx>
    FMHA_DEVICE void begin_with(Ctx& ctx, const Scoring& of_rows) {
        begin_rows(ctx, of_rows, top, total, row0);
        ctx.split_rows(total); // lanes exchange their sums once, not in every tile
        factor = ctx.to_base2(ctx.scale(args.score) * scoring.descale.q * scoring.descale.k);
        if (CarriedWeights::serve(ctx.cfg())) {
            carried = CarriedWeights::of(ctx, of_rows, factor);
            carried.begin(ctx, top, reference, total);
            in_products = carried.in_products;
        } else {
            in_products = scales_alone(ctx.cfg().signature) && factor > 0.0F;
        }
    }
};

/// The output of a team's rows: the products of weights and values of its tiles, one after another.
///
/// Of products with few bits a sum is one of a tile (`adds_tiles_apart`). It joins the output when that has shrunk as the tile before wanted: at
/// once, or late, while the next scores are multiplied and a team has nothing else to do. With V by column that gains nothing, and beside
/// a generic mask registers do not do.
template <class Sums, class Addend, class Rows>
struct TeamOutput {
    Sums& sums;
    Addend& addend;      ///< of a tile, where sums are apart
    Rows& shrink_before; ///< as the tile before wanted

    FMHA_DEVICE static constexpr bool apart(const KernelConfig& cfg) {
        return adds_tiles_apart(cfg.signature.data_type);
    }
    FMHA_DEVICE static constexpr bool late(const KernelConfig& cfg) {
        return apart(cfg) && CarriedWeights::serve(cfg) && cfg.signature.v_layout == VLayout::row;
    }
    template <class Ctx>
    FMHA_DEVICE void begin(Ctx& ctx) {
        ctx.fill(sums, 0.0F);
        if (apart(ctx.cfg())) ctx.fill(shrink_before, 1.0F);
        if (late(ctx.cfg())) ctx.fill(addend, 0.0F);
    }
    /// Before `start`: the sum of the tile before joins, if it does so late.
    template <class Ctx>
    FMHA_DEVICE void join_late(Ctx& ctx, const Rows& shrink) {
        if (late(ctx.cfg())) join(ctx, shrink);
    }
    template <class Ctx, class Weights>
    FMHA_DEVICE void start(Ctx& ctx, Weights& weights) {
        if (apart(ctx.cfg()))
            ctx.start(addend, weights, ctx.value_stream(), false);
        else
            ctx.start(sums, weights, ctx.value_stream());
    }
    template <class Ctx>
    FMHA_DEVICE void finish(Ctx& ctx) {
        if (apart(ctx.cfg()))
            ctx.finish(addend, 0);
        else
            ctx.finish(sums, 0);
    }
    /// After `finish`: the output shrinks as the tile wants whose weights are multiplied next.
    template <class Ctx>
    FMHA_DEVICE void shrink_by(Ctx& ctx, const Rows& shrink) {
        if (!apart(ctx.cfg()))
            ctx.scale_rows(sums, shrink);
        else if (!late(ctx.cfg()))
            join(ctx, shrink);
    }
    /// After the `finish` of the last tile.
    template <class Ctx>
    FMHA_DEVICE void end(Ctx& ctx) {
        if (apart(ctx.cfg())) ctx.scale_and_add(sums, shrink_before, addend);
    }

  private:
    /// The sum of a tile joins the output, which shrinks as the tile before wanted; the next one will by `shrink`.
    template <class Ctx>
    FMHA_DEVICE void join(Ctx& ctx, const Rows& shrink) {
        ctx.scale_and_add(sums, shrink_before, addend);
        ctx.map_rows(shrink_before, shrink, shrink, [](float f, float) { return f; });
    }
};

/// The end of an item: the LSE of its rows, and the output divided by what their weights sum up to.
template <class Ctx, class Args, class Softmax, class Output>
FMHA_DEVICE void store_item(Ctx& ctx, const WsWork<Args>& work, Softmax& softmax, Output& output) {
    const auto& divisor = softmax.end(ctx);
    auto to = FwdResults::of(ctx.cfg(), softmax.args, work.entry, work.item.b, work.item.h);
    to.o.heads = to.lse.heads = ctx.stored_rows(work.heads);
    store_rows(ctx, to, softmax.scoring, output.sums, softmax.top, softmax.total, divisor, softmax.shrink,
               softmax.row0, 0, true, softmax.args.score.scale_o);
}

/// Forward attention (F-1 … F-10), of keys one after another or in pages, by a block of teams, each of which owns some of the m0
/// query rows of an item, and a feed that copies what they multiply. A team takes one tile of keys at a time. While it turns the
/// scores of a tile into weights, its product of the weights and values of the tile before runs, and the products of other teams.
template <class Ctx, HasTeams Args, class Items>
FMHA_DEVICE void fmha_fwd_ws(Ctx& ctx, const Args& args, const Items& items) {
    const auto query = ctx.query_stream();
    const auto key = ctx.key_stream();
    const auto value = ctx.value_stream();

    const auto work_of = [&](const FwdItem& item) {
        return WsWork<Args>::of(ctx, args, item, items.lengths_equal());
    };
    const WsFeed<Ctx, Args> feed{ctx, items.of_page()};
    const auto fills = [&](const WsWork<Args>& work, int step) { feed.fills(work, step); };
    const auto transposes = [&](const WsWork<Args>&, int step) { feed.transposes(step); };
    // The consumer. Its products and loops stand here: in functions of their own nvcc computes the places of stages otherwise, and unrolls.
    const auto team = [&](const WsWork<Args>& work) {
        const auto& cfg = ctx.cfg();
        const auto& [item, entry, heads, rows, hk, in, tiles, count] = work;
        const Scoring scoring = Scoring::of(ctx, args, entry, item, hk);
        const std::int64_t row0 = rows.first + ctx.team_row();
        auto scores = ctx.scores();
        auto out = ctx.output();
        auto top = ctx.rows(), total = ctx.rows(), shrink = ctx.rows();
        auto addend = ctx.addend();
        auto shrink_before = ctx.rows(), reference = ctx.rows();
        TeamOutput<decltype(out), decltype(addend), decltype(top)> output{out, addend, shrink_before};
        output.begin(ctx);
        TeamSoftmax<Args, decltype(top)> softmax{args, scoring, row0, top, total, shrink, reference};
        softmax.begin(ctx);
        const auto weigh = [&]<Masking masking>(int step) FMHA_INLINE_LAMBDA {
            ctx.visit(work.item, work.tiles.at(step));
            softmax.template weigh<masking>(ctx, scores, work.in.bias,
                                            work.in.span(work.tiles.at(step), ctx.cfg().algorithm.tile.n0));
        };
        const bool carries = CarriedWeights::serve(cfg);
        // Both products and a softmax of products alone take all registers there are: a mask or a bias would spill.
        const bool holds_behind = output.apart(cfg) && carries && scales_alone(cfg.signature);

        const TeamTiles seen = TeamTiles::of(ctx, work, scoring.mask, row0);
        const int first = seen.first, end = seen.end;
        // Tiles that only other teams of the block see.
        const auto give_back = [&](int step) FMHA_INLINE_LAMBDA {
            ctx.take(key);
            ctx.give(key);
            if (step > 0) ctx.turn();
            if (step > 0) ctx.pass();
            ctx.take(value);
            ctx.give(value);
        };
        if (count > 0) ctx.take(query);
        if (first == end && count > 0) ctx.give(query);
        FMHA_NO_UNROLL
        for (int step = 0; step < first; ++step) give_back(step);
        // Once, or for every tile where weights are not made beside products.
        FMHA_NO_UNROLL
        for (int step = first; step < end;) {
            if (step > 0) ctx.turn();
            if (step > 0) ctx.pass();
            // The weights of a tile, with nothing beside it.
            ctx.take(key);
            ctx.start(scores, query, key);
            ctx.finish(scores, 0);
            ctx.give(key);
            ctx.give(query, step + 1 == end); // the feed may bring those of the next item
            weigh.template operator()<Masking::if_needed>(step);
            if (step > first) output.shrink_by(ctx, shrink);
            auto weights = ctx.narrow(scores, carries);
            ++step;
            // Those of another tile, while its values are multiplied by the weights of the one before.
            const auto next_tile = [&]<Masking masking>(int t) FMHA_INLINE_LAMBDA {
                ctx.take(key);
                ctx.turn();
                ctx.start(scores, query, key);
                ctx.take(value);
                output.join_late(ctx, shrink);
                output.start(ctx, weights);
                ctx.pass();
                ctx.finish(scores, 1);
                ctx.give(key);
                ctx.give(query, t + 1 == end);
                weigh.template operator()<masking>(t);
                ctx.settle(scores); // while the product of the values runs
                if (holds_behind && masking == Masking::off) ctx.hold_behind(total);
                output.finish(ctx);
                ctx.give(value);
                output.shrink_by(ctx, shrink);
                weights = ctx.narrow(scores, carries);
            };
            // A branch between start and finish of a product would end it, hence a tile with a mask and one without. Those without
            // follow each other, with nothing to ask between them.
            const int overlapped_end = softmax.beside_products(cfg) ? end : step;
            const int plain_end = seen.plain.end < end ? seen.plain.end : end;
            FMHA_NO_UNROLL
            while (step < overlapped_end) {
                const int masked = seen.plain.has(step) ? plain_end : step;
                FMHA_NO_UNROLL
                for (; step < masked; ++step) next_tile.template operator()<Masking::off>(step);
                if (step < end) next_tile.template operator()<Masking::always>(step++);
            }
            // The values of the last tile.
            output.join_late(ctx, shrink);
            ctx.take(value);
            output.start(ctx, weights);
            output.finish(ctx);
            ctx.give(value);
            if (!scales_alone(cfg.signature)) break; // no loop, which would take registers
        }
        if (first < end) output.end(ctx);
        FMHA_NO_UNROLL
        for (int step = end; step < count; ++step) give_back(step);

        store_item(ctx, work, softmax, output);
    };
    ctx.run(items, work_of, fills, transposes, team);
}

} // namespace fmha::kernels
