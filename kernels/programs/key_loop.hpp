#pragma once

#include "kernels/programs/alibi.hpp"
#include "kernels/programs/decisions.hpp"
#include "kernels/programs/hidden_keys.hpp"

namespace fmha::kernels {

/// The part of attention that one block computes: query rows [q_tile·m0, …) and output channels [v_tile·n1, …) of one (entry,
/// head).
struct FwdItem {
    std::int64_t b = 0, h = 0, q_tile = 0, v_tile = 0;
};
FMHA_FIELDS(FwdItem, b, h, q_tile, v_tile)

/// The query rows of a block: `first` and how many of m0 exist, none or a negative number behind the last one.
struct QueryRows {
    std::int64_t first = 0, count = 0;

    FMHA_DEVICE static constexpr QueryRows of(const Tile& tile, std::int64_t seqlen_q, std::int64_t q_tile) {
        return among(tile.m0, seqlen_q, q_tile);
    }
    /// The same of each head. Apart, because a number that might be another one than m0 leaves kernels without such heads other code.
    FMHA_DEVICE static constexpr QueryRows of(const Tile& tile, std::int64_t seqlen_q, std::int64_t q_tile,
                                              const HeadRows& heads) {
        return among(heads.of_head(tile.m0), seqlen_q, q_tile);
    }
    /// How many rows the tile of a block has: all of them where heads share it.
    template <class Args>
    static std::int64_t in_tile(const KernelConfig& cfg, const Args& args, std::int64_t seqlen_q,
                                std::int64_t q_tile) {
        const HeadRows heads = HeadRows::of(cfg, args);
        const std::int64_t count = of(cfg.algorithm.tile, seqlen_q, q_tile, heads).count;
        return heads.any() && count > 0 ? cfg.algorithm.tile.m0 : count;
    }

  private:
    FMHA_DEVICE static constexpr QueryRows among(std::int64_t most, std::int64_t seqlen_q,
                                                 std::int64_t q_tile) {
        const std::int64_t first = q_tile * most;
        return {first, seqlen_q - first < most ? seqlen_q - first : most};
    }
};

/// The numbers that turn products of one (entry, head) into weights.
struct Scoring {
    Descales descale;
    Mask mask;
    Alibi alibi;
    Dropout dropout;
    float sink = never, sink_top = never; ///< sink logit in natural and in base-2 units
    HeadRows heads;                       ///< of the rows
    const float* sinks = nullptr;         ///< the logits of several heads, from the first one on

    template <class Ctx, class Args>
    FMHA_DEVICE static Scoring of(Ctx& ctx, const Args& args, const Entry& entry, const FwdItem& item,
                                  std::int64_t hk) {
        const auto& cfg = ctx.cfg();
        const auto& has = cfg.signature;
        Scoring s;
        s.descale = Descales::of(cfg, args.quant, item.b, item.h, hk);
        s.mask = ctx.mask(Mask::of(args.mask, has.mask, has.has_sink, entry.seqlen_q, entry.seqlen_k));
        if (has.bias == BiasType::alibi)
            s.alibi = Alibi::of(args.mask, s.mask, ctx.alibi_slope(args.score, item.b, item.h),
                                entry.seqlen_q, entry.seqlen_k);
        if constexpr (requires { args.dropout; })
            s.dropout = Dropout::of(args.dropout, has.has_dropout, args.shape.nhead_q, item.b, item.h);
        s.heads = ctx.scored_rows(HeadRows::of(cfg, args));
        if (has.has_sink_logit && args.score.sink_logit != nullptr) {
            s.sink = args.score.sink_logit[item.h];
            if (s.heads.any()) s.sinks = args.score.sink_logit + item.h;
        }
        s.sink_top = ctx.to_base2(s.sink);
        return s;
    }
    /// The same after the loop over keys. Numbers computed from a logit or a slope take vector registers on a GPU, which may have none
    /// to keep them that long.
    template <class Ctx>
    FMHA_DEVICE Scoring after_keys(Ctx& ctx) const {
        const auto& has = ctx.cfg().signature;
        Scoring s = *this;
        if (has.has_sink_logit) {
            s.sink = ctx.again(sink);
            s.sink_top = ctx.to_base2(s.sink);
        }
        if (has.bias == BiasType::alibi) s.alibi.slope = ctx.again(alibi.slope);
        return s;
    }
    FMHA_DEVICE Scoring without_sinks() const {
        Scoring s = *this;
        s.sink = s.sink_top = never;
        s.sinks = nullptr;
        return s;
    }
    /// Whether all rows of the tile from row0 on see all of its keys from key0 on, where keys end at `key_count`.
    FMHA_DEVICE bool shows_all(const KernelConfig& cfg, std::int64_t row0, std::int64_t key0,
                               std::int64_t key_count) const {
        const Tile& tile = cfg.algorithm.tile;
        return mask.shows_all(row0, tile.m0, key0, tile.n0, key_count, cfg.signature.mask);
    }
    /// Of a row of the tile, where `sinks` are there.
    FMHA_DEVICE float sink_of(std::int32_t row) const { return sinks[heads.head(row)]; }
};

/// F-1: scores = Q·Kᵀ of the key tile at row `key_row` of its matrix.
template <class Ctx, class Scores, class Query, class Key>
FMHA_DEVICE void multiply_keys(Ctx& ctx, Scores& scores, Query& query, Key& key, const Matrix& keys,
                               std::int64_t key_row) {
    const Tile& tile = ctx.cfg().algorithm.tile;
    ctx.fill(scores, 0.0F);
    FMHA_UNROLL
    for (int step = 0; step < ctx.steps(tile.k0max, keys.cols.read, tile.k0); ++step) {
        ctx.load_transposed(key, keys, key_row, step * tile.k0);
        ctx.product(scores, query, step * tile.k0, key);
    }
}

/// Whether keys of a tile are looked at one by one: when some of them are hidden, or as the caller knows.
enum class Masking : std::uint8_t { if_needed, always, off };

/// An elementwise bias, of which a tile of scores has the columns from `column` on.
struct TileBias {
    Matrix matrix;
    std::int64_t column = 0;
};

/// F-4 and F-5: adds the position bias to logits in base 2, and hides keys. `is_whole()` is asked if_needed, whether all rows of the tile see all its keys.
template <Masking masking = Masking::if_needed, class Ctx, class Scores, class Whole>
FMHA_DEVICE void bias_and_mask(Ctx& ctx, Scores& scores, const Scoring& scoring, const TileBias& bias,
                               std::int64_t key_count, std::int64_t row0, std::int64_t key0, Whole is_whole) {
    const auto& has = ctx.cfg().signature;
    const Tile& tile = ctx.cfg().algorithm.tile;
    if (has.bias == BiasType::elementwise) ctx.add_bias(scores, bias.matrix, row0, bias.column);
    if (has.bias == BiasType::alibi) {
        const float factor = ctx.to_base2(scoring.alibi.factor);
        const auto add_distances = [&] { ctx.add_distances(scores, factor, scoring.alibi.tile(row0, key0)); };
        // Beside the products of a team there are no branches.
        if constexpr (masking != Masking::if_needed) {
            add_distances();
        } else {
            const TilePlane plane = scoring.alibi.planes(row0, tile.m0, tile.n0).at(key0);
            ctx.add_plane(scores, factor, plane);
            if (plane.side == 0) add_distances();
        }
    }

    // Only tiles that an edge of the mask or the end of the keys crosses have hidden elements.
    if constexpr (masking == Masking::off) return;
    if (masking == Masking::always || !is_whole())
        ctx.hide(scores,
                 HiddenKeys{TileMask::of(scoring.mask, row0, key0, key_count), has.mask, scoring.heads});
}

/// F-2 to F-5: scores, which may be `scaled` already, become logits in base 2, −∞ where a key is hidden.
template <Masking masking = Masking::if_needed, class Ctx, class Scores, class Args, class Whole>
FMHA_DEVICE void scores_to_logits(Ctx& ctx, Scores& scores, const Args& args, const Scoring& scoring,
                                  const Matrix& bias, std::int64_t row0, const KeyTile& at, Whole is_whole,
                                  bool scaled = false) {
    const auto& has = ctx.cfg().signature;
    // Descales are constant within a tile.
    const float scale =
        ctx.scale(args.score) * scoring.descale.q_at(args.quant, row0) * scoring.descale.k_at(args.quant, at);
    if (has.has_logits_soft_cap)
        ctx.soft_cap(scores, scale / args.score.logits_soft_cap, ctx.to_base2(args.score.logits_soft_cap));
    else if (!scaled)
        ctx.scale_all(scores, ctx.to_base2(scale));

    bias_and_mask<masking>(ctx, scores, scoring, {at.columns_of(bias), at.column()}, at.end, row0, at.first,
                           is_whole);
}

/// F-6: scores become weights exp2(score − top), and their total shrinks by exp2(old top − new top) before they are added. The
/// output so far has to shrink as well. A row that has seen nothing yet keeps top = −∞, shrink = 1 and weights
/// of 0, never NaN. With `slack` top follows only where it would grow by more than that: weights may reach exp2(slack).
/// `total` is the sum of parts that lanes have each for themselves (split_rows).
template <class Ctx, class Scores, class Rows>
FMHA_DEVICE void logits_to_weights(Ctx& ctx, Scores& scores, Rows& top, Rows& total, Rows& shrink,
                                   float slack) {
    ctx.raise_to_row_max(top, shrink, scores, slack);
    ctx.exp2_minus(scores, top);
    ctx.scale_rows(total, shrink);
    ctx.add_row_parts(total, scores);
}

/// Whether logits in base 2 are products of queries and keys times one factor.
FMHA_DEVICE constexpr bool scales_alone(const Signature& has) {
    return has.bias == BiasType::no_bias && !has.has_logits_soft_cap;
}

/// F-2 and F-6 for such logits, to the same bits: `factor` is above 0, so that roundings of products with it keep their order, and a hidden
/// key stays at −∞. Multiplications come after the maxima, beside the exponentials.
template <class Ctx, class Scores, class Rows>
FMHA_DEVICE void products_to_weights(Ctx& ctx, Scores& scores, float factor, Rows& top, Rows& total,
                                     Rows& shrink, float slack) {
    ctx.raise_to_row_max(top, shrink, scores, slack, factor);
    ctx.exp2_minus(scores, top, factor);
    ctx.scale_rows(total, shrink);
    ctx.add_row_parts(total, scores);
}

/// out += weights · V of the key tile at row `key_row` of its matrix.
template <class Ctx, class Output, class Weights, class Value>
FMHA_DEVICE void multiply_values(Ctx& ctx, Output& out, Weights& weights, Value& value, const Matrix& values,
                                 std::int64_t key_row, std::int64_t channel0, float descale) {
    const Tile& tile = ctx.cfg().algorithm.tile;
    FMHA_UNROLL
    for (int step = 0; step < ctx.steps(tile.n0, values.rows.read - key_row, tile.k1); ++step) {
        ctx.load(value, values, key_row + step * tile.k1, channel0);
        ctx.product(out, weights, step * tile.k1, value, descale);
    }
}

/// Where the running maximum of a row begins: at the sink logit, in the units of the row's logits.
template <class Ctx>
FMHA_DEVICE float first_top(Ctx& ctx, const Scoring& scoring, float origin) {
    return ctx.to_base2(__builtin_fmaf(-scoring.alibi.slope, origin, scoring.sink));
}

/// Maxima of rows with ALiBi from the units of their logits to natural ones, with β0. `origin` is overwritten.
template <class Ctx, class Rows>
FMHA_DEVICE void add_alibi_origin(Ctx& ctx, Rows& maximum, Rows& origin, const Rows& top,
                                  const Scoring& scoring, std::int64_t row0) {
    ctx.set_rows(origin, [&](int r) { return scoring.alibi.origin(row0 + r); });
    ctx.map_rows(maximum, top, origin, [&](float m, float at) {
        return m == first_top(ctx, scoring, at) ? scoring.sink
                                                : __builtin_fmaf(scoring.alibi.slope, at, m * ln2);
    });
}

/// LSE of every row (F-7), from its maximum in base 2 and its total. `spare` is overwritten.
template <class Ctx, class Rows>
FMHA_DEVICE void store_lse(Ctx& ctx, const Matrix& to, const Rows& top, const Rows& total, Rows& spare,
                           const Scoring& scoring, std::int64_t row0) {
    auto lse = ctx.rows();
    // A row that sees no key returns the sink exactly, hence no round trip through base 2.
    if (ctx.cfg().signature.bias == BiasType::alibi) {
        add_alibi_origin(ctx, lse, spare, top, scoring, row0);
        ctx.map_rows(lse, lse, total,
                     [&ctx](float m, float sum) { return sum > 0.0F ? ctx.lse(m, ctx.log(sum)) : never; });
    } else if (scoring.sinks != nullptr) {
        ctx.set_rows(spare, [&](int r) { return scoring.sink_of(r); });
        ctx.map_rows(lse, top, spare,
                     [&ctx](float m, float sink) { return m == ctx.to_base2(sink) ? sink : m * ln2; });
        ctx.map_rows(lse, lse, total,
                     [&ctx](float m, float sum) { return sum > 0.0F ? ctx.lse(m, ctx.log(sum)) : never; });
    } else {
        ctx.map_rows(lse, top, total,
                     [&ctx, sink = scoring.sink, sink_top = scoring.sink_top](float m, float sum) {
                         return sum > 0.0F ? ctx.lse(m == sink_top ? sink : m * ln2, ctx.log(sum)) : never;
                     });
    }
    ctx.store(to, lse, row0);
}

/// Where maximum and total of the rows begin: at the sink logit and its share, or at nothing.
template <class Ctx, class Rows>
FMHA_DEVICE void begin_rows(Ctx& ctx, const Scoring& scoring, Rows& top, Rows& total, std::int64_t row0) {
    const auto& has = ctx.cfg().signature;
    if (scoring.sinks != nullptr) {
        ctx.set_rows(top, [&](int r) { return ctx.to_base2(scoring.sink_of(r)); });
        ctx.set_rows(total, [&](int r) { return ctx.sink_mass(scoring.sink_of(r)); });
        return;
    }
    if (has.bias == BiasType::alibi && has.has_sink_logit)
        ctx.set_rows(top, [&](int r) { return first_top(ctx, scoring, scoring.alibi.origin(row0 + r)); });
    else
        ctx.fill(top, scoring.sink_top);
    ctx.fill(total, ctx.sink_mass(scoring.sink));
}

/// Stores the LSE of the rows where `stores_lse`, from their totals, and the output divided by `divisor`, which may be the totals. `shrink` is
/// overwritten.
template <class Ctx, class Results, class Output, class Rows>
FMHA_DEVICE void store_rows(Ctx& ctx, const Results& to, const Scoring& scoring, Output& out, const Rows& top,
                            const Rows& total, const Rows& divisor, Rows& shrink, std::int64_t row0,
                            std::int64_t channel0, bool stores_lse, float scale) {
    if (ctx.cfg().signature.has_lse && to.lse.tensor.present() && stores_lse)
        store_lse(ctx, to.lse, top, total, shrink, scoring.after_keys(ctx), row0);
    const float output_scale =
        scale * scoring.descale.v * ctx.dropout_rescale(scoring.dropout) * ctx.weight_unit();
    ctx.map_rows(shrink, divisor, divisor, [&ctx, output_scale](float, float sum) {
        return sum > 0.0F ? ctx.quotient(output_scale, sum) : 0.0F;
    });
    ctx.scale_rows(out, shrink);
    ctx.store(to.o, out, row0, channel0);
}

/// Asks for the keys of a tile, and with `both` for its values.
template <class Ctx, class Key, class Value, class In>
FMHA_DEVICE void prefetch_tile(Ctx& ctx, Key& key, Value& value, const In& in, const KeyTile& at,
                               std::int64_t channel0, bool both) {
    ctx.prefetch(key, in.keys(at), at.row, 0);
    if (both) ctx.prefetch(value, in.values(at), at.row, channel0);
}

/// The loop over keys of the programs of attention: one block, which owns m0 query rows and n1 channels of the output,
/// streams the keys of `tiles` past them. Its tiles:
///
/// - query (m0, hdim_q), an operand
/// - scores (m0, n0), an accumulator: logits of one key tile, then weights exp2(score − top)
/// - top (m0), a row vector: the running maximum, which starts at the sink logit or at −∞
/// - total (m0), a row vector: the running sum of weights, which starts with the sink's share
/// - out (m0, n1), an accumulator: Σ weight · value, not yet divided by total
///
/// Logits carry a factor log2 e, so that every exponential is exp2; only the stored LSE returns to natural units. With ALiBi
/// they are relative to β0 of their row (`Alibi`), which the LSE gets back.
/// `in` holds the matrices, those of a key tile as `keys(tile)` and `values(tile)`, where `tile(ctx, visited)` is a KeyTile;
/// a tile that does not exist has no keys. `results()` has the places of output and LSE;
/// it is asked after the loop, because a GPU has no registers to spare before. `scale` multiplies the output.
template <class Ctx, class Args, class In, class Results>
FMHA_DEVICE void attend(Ctx& ctx, const Args& args, const FwdItem& item, const In& in, const Scoring& scoring,
                        const KeyTiles& tiles, Results results, float scale) {
    const Tile& tile = ctx.cfg().algorithm.tile;
    const std::int64_t row0 = item.q_tile * tile.m0, channel0 = item.v_tile * tile.n1;
    const bool owns_rows = item.v_tile == 0; // the first column block stores the numbers of rows

    auto query = ctx.query();
    auto key = ctx.key();
    auto value = ctx.value();
    auto scores = ctx.scores();
    auto out = ctx.output();
    auto top = ctx.rows(), total = ctx.rows(), shrink = ctx.rows();
    [[maybe_unused]] auto row_descales = ctx.rows();

    ctx.load(query, in.q, row0, 0);
    if constexpr (requires { in.load_descales(ctx, row_descales, args, scoring.descale, row0); })
        in.load_descales(ctx, row_descales, args, scoring.descale, row0);
    ctx.fill(out, 0.0F);
    begin_rows(ctx, scoring, top, total, row0);
    ctx.split_rows(total); // where that pays, lanes exchange their sums once, not in every tile
    // Where tiles have to be looked up, that happens once each, ahead of its first use.
    auto visits = in.visits(tiles, ctx.cfg(), scoring.mask, row0, ctx.counts_tiles());
    KeyTile ahead;
    if constexpr (In::looks_up) ahead = in.tile(ctx, visits.present());
    const auto tile_at = [&](const VisitedTile& visited) {
        KeyTile at = ahead;
        if constexpr (!In::looks_up) at = in.tile(ctx, visited);
        if constexpr (std::is_same_v<decltype(ctx.counts_tiles()), std::false_type>) at.apart = false;
        return at;
    };
    // Few rows wait for memory: all of the next tile is asked for before the present one is multiplied. Many rows need the
    // registers first, and have time for their values while they multiply keys.
    const bool ahead_of_use = ctx.tiles_ahead();
    constexpr bool may_bring_descales = requires {
        in.prefetch_descales(ctx, args, scoring.descale, ahead);
    };
    if constexpr (may_bring_descales) in.prefetch_descales(ctx, args, scoring.descale, ahead);
    prefetch_tile(ctx, key, value, in, tile_at(visits.present()), channel0, ahead_of_use);
    ctx.commit();

    while (visits.any()) {
        const KeyTile at = tile_at(visits.present());
        if constexpr (In::looks_up) ahead = in.tile(ctx, visits.next());
        ctx.visit(item, visits.number());
        if (!ahead_of_use) {
            ctx.prefetch(value, in.values(at), at.row, channel0);
            ctx.commit();
        }

        const auto prefetch_next = [&] {
            if constexpr (may_bring_descales)
                if (visits.has_next()) in.prefetch_descales(ctx, args, scoring.descale, ahead);
            if (visits.has_next())
                prefetch_tile(ctx, key, value, in, tile_at(visits.next()), channel0, ahead_of_use);
            ctx.commit();
        };
        ctx.wait(ahead_of_use ? 0 : 1); // the keys are there, the values may still be on their way
        if (ahead_of_use) prefetch_next();
        multiply_keys(ctx, scores, query, key, in.keys(at), at.row);
        if (!ahead_of_use) prefetch_next();

        bool scaled = false;
        if constexpr (requires {
                          in.descale_tokens(ctx, scores, args, scoring.descale, row0, at, row_descales);
                      })
            scaled = in.descale_tokens(ctx, scores, args, scoring.descale, row0, at, row_descales);
        const auto is_whole = [&] {
            return visits.is_whole([&] { return scoring.shows_all(ctx.cfg(), row0, at.first, at.end); });
        };
        scores_to_logits(ctx, scores, args, scoring, in.bias, row0, at, is_whole, scaled);
        logits_to_weights(ctx, scores, top, total, shrink, ctx.slack());
        ctx.scale_rows(out, shrink);
        // F-9 after the sum, because the normaliser uses undropped weights (D-3).
        if constexpr (requires { args.randval; })
            if (scoring.dropout.on) {
                auto random = ctx.random_bytes();
                ctx.generate(random, scoring.dropout.squares, row0, at.first);
                ctx.drop(scores, random, scoring.dropout.threshold);
                if (args.randval.present() && owns_rows) ctx.store(in.randval, random, row0, at.first);
            }
        auto weights = ctx.narrow(scores); // F-10
        if (!ahead_of_use) ctx.wait(1);    // the values are there
        multiply_values(ctx, out, weights, value, in.values(at), at.row, channel0,
                        scoring.descale.v_at(args.quant, at));
        visits.advance();
    }

    ctx.join_rows(total);
    const auto store = [&](auto& sums) {
        store_rows(ctx, results(), scoring, sums, top, total, total, shrink, row0, channel0, owns_rows,
                   scale);
    };
    if constexpr (requires { ctx.join(out, top, total); }) {
        auto joined = ctx.join(out, top, total);
        store(joined);
    } else {
        store(out);
    }
}

} // namespace fmha::kernels
