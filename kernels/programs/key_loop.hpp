#pragma once

#include "kernels/programs/decisions.hpp"

#include <utility>

namespace fmha::kernels {

inline constexpr float never = -__builtin_inff(); ///< logit of a key that is not seen
inline constexpr float ln2 = 0.693147180559945309F;

/// What one block of attention computes: query rows [q_tile·m0, …) and output channels [v_tile·n1, …) of one (entry,
/// head).
struct FwdItem {
    std::int64_t b = 0, h = 0, q_tile = 0, v_tile = 0;
};
FMHA_FIELDS(FwdItem, b, h, q_tile, v_tile)

/// The query rows of a block: `first` and how many of m0 exist, none or a negative number behind the last one.
struct QueryRows {
    std::int64_t first = 0, count = 0;

    FMHA_DEVICE static constexpr QueryRows of(const Tile& tile, std::int64_t seqlen_q, std::int64_t q_tile) {
        const std::int64_t first = q_tile * tile.m0;
        return {first, seqlen_q - first < tile.m0 ? seqlen_q - first : tile.m0};
    }
};

/// What turns the products of one (entry, head) into weights.
struct Scoring {
    Descales descale;
    Mask mask;
    Alibi alibi;
    Dropout dropout;
    float sink = never, sink_top = never; ///< sink logit in natural and in base-2 units

    template <class Ctx, class Args>
    FMHA_DEVICE static Scoring of(Ctx& ctx, const Args& args, const Entry& entry, const FwdItem& item,
                                  std::int64_t hk) {
        const auto& cfg = ctx.cfg();
        const auto& has = cfg.signature;
        Scoring s;
        s.descale = Descales::of(cfg, args.quant, item.b, item.h, hk);
        s.mask = ctx.mask(Mask::of(args.mask, has.mask, has.has_sink, entry.seqlen_q, entry.seqlen_k));
        if (has.bias == BiasType::alibi)
            s.alibi = Alibi::of(args.mask, ctx.alibi_slope(args.score, item.b, item.h), entry.seqlen_q,
                                entry.seqlen_k);
        if constexpr (requires { args.dropout; })
            s.dropout = Dropout::of(args.dropout, has.has_dropout, args.shape.nhead_q, item.b, item.h);
        if (has.has_sink_logit && args.score.sink_logit != nullptr) s.sink = args.score.sink_logit[item.h];
        s.sink_top = ctx.to_base2(s.sink);
        return s;
    }
};

/// The loop over keys that the programs of attention share: one block, which owns m0 query rows and n1 channels of the
/// output, streams the keys past them. Its tiles:
///
/// - query (m0, hdim_q), an operand
/// - scores (m0, n0), an accumulator: logits of one key tile, then weights exp2(score − top)
/// - top (m0), a row vector: the running maximum, which starts at the sink logit or at −∞
/// - total (m0), a row vector: the running sum of weights, which starts with the sink's share
/// - out (m0, n1), an accumulator: Σ weight · value, not yet divided by total
///
/// Logits carry a factor log2 e, so that every exponential is exp2; only the stored LSE returns to natural units.
/// `In` holds the matrices, those of a key tile from `keys(key0)` and `values(key0)`.
template <class Ctx, class Args, class In>
class KeyLoop {
  public:
    FMHA_DEVICE KeyLoop(Ctx& ctx, const Args& args, const In& in, const Scoring& scoring, const FwdItem& item)
        : ctx_(ctx), args_(args), in_(in), scoring_(scoring), item_(item), query_(ctx.query()),
          key_(ctx.key()), value_(ctx.value()), scores_(ctx.scores()), out_(ctx.output()), top_(ctx.rows()),
          total_(ctx.rows()), shrink_(ctx.rows()) {}

    FMHA_DEVICE void run(const KeyTiles& tiles) {
        const Tile& tile = ctx_.cfg().algorithm.tile;
        ctx_.load(query_, in_.q, row0(), 0);
        ctx_.fill(out_, 0.0F);
        ctx_.fill(top_, scoring_.sink_top);
        ctx_.fill(total_, ctx_.sink_mass(scoring_.sink));
        ctx_.prefetch(key_, in_.keys(tiles.first() * tile.n0), tiles.first() * tile.n0, 0);
        ctx_.commit();

        for (std::int64_t t = tiles.first(); t < tiles.end; t = tiles.next(t)) {
            const std::int64_t key0 = t * tile.n0;
            ctx_.visit(item_, t);
            ctx_.prefetch(value_, in_.values(key0), key0, channel0());
            ctx_.commit();

            ctx_.wait(1); // the keys are there, the values may still be on their way
            multiply_keys(key0);
            if (const std::int64_t next = tiles.next(t); next < tiles.end)
                ctx_.prefetch(key_, in_.keys(next * tile.n0), next * tile.n0, 0);
            ctx_.commit();

            scores_to_logits(key0);
            logits_to_weights();
            drop(key0);
            auto weights = ctx_.narrow(scores_); // F-10
            ctx_.wait(1);                        // the values are there
            multiply_values(weights, key0);
        }
    }

    /// Divides by the totals and stores; `scale` is what multiplies the output beside descales and dropout.
    FMHA_DEVICE void store(const FwdResults& to, float scale) {
        if (ctx_.cfg().signature.has_lse && to.lse.tensor.present() && owns_rows()) {
            auto lse = ctx_.rows();
            ctx_.map_rows(
                lse, top_, total_,
                [&ctx = ctx_, sink = scoring_.sink, sink_top = scoring_.sink_top](float m, float sum) {
                    // A row that sees no key returns the sink exactly, hence no round trip through base 2.
                    return sum > 0.0F ? ctx.lse(m == sink_top ? sink : m * ln2, ctx.log(sum)) : never;
                });
            ctx_.store(to.lse, lse, row0());
        }
        const float output_scale =
            scale * scoring_.descale.v * ctx_.dropout_rescale(scoring_.dropout) * ctx_.weight_unit();
        ctx_.map_rows(shrink_, total_, total_,
                      [output_scale](float, float sum) { return sum > 0.0F ? output_scale / sum : 0.0F; });
        ctx_.scale_rows(out_, shrink_);
        ctx_.store(to.o, out_, row0(), channel0());
    }

  private:
    FMHA_DEVICE std::int64_t row0() const { return item_.q_tile * ctx_.cfg().algorithm.tile.m0; }
    FMHA_DEVICE std::int64_t channel0() const { return item_.v_tile * ctx_.cfg().algorithm.tile.n1; }
    /// The first column block stores what exists once per row.
    FMHA_DEVICE bool owns_rows() const { return item_.v_tile == 0; }

    /// F-1
    FMHA_DEVICE void multiply_keys(std::int64_t key0) {
        const Tile& tile = ctx_.cfg().algorithm.tile;
        const Matrix& keys = in_.keys(key0);
        ctx_.fill(scores_, 0.0F);
        FMHA_UNROLL
        for (int step = 0; step < ctx_.steps(tile.k0max, in_.q.cols.read, tile.k0); ++step) {
            ctx_.load_transposed(key_, keys, key0, step * tile.k0);
            ctx_.product(scores_, query_, step * tile.k0, key_);
        }
    }

    /// F-2 to F-5
    FMHA_DEVICE void scores_to_logits(std::int64_t key0) {
        const auto& has = ctx_.cfg().signature;
        const Tile& tile = ctx_.cfg().algorithm.tile;
        // Descales are constant within a tile.
        const float scale = ctx_.scale(args_.score) * scoring_.descale.q_at(args_.quant, row0()) *
                            scoring_.descale.k_at(args_.quant, key0);
        if (has.has_logits_soft_cap)
            ctx_.soft_cap(scores_, scale / args_.score.logits_soft_cap,
                          ctx_.to_base2(args_.score.logits_soft_cap));
        else
            ctx_.map(scores_, [f = ctx_.to_base2(scale)](float s, int, int) { return s * f; });

        if (has.bias == BiasType::elementwise) ctx_.add_bias(scores_, in_.bias, row0(), key0);
        if (has.bias == BiasType::alibi)
            ctx_.map(scores_, [&ctx = ctx_, at = TileAlibi::of(scoring_.alibi, row0(), key0)](
                                  float s, int r, int c) { return s + ctx.to_base2(at.at(r, c)); });

        // Only tiles that an edge of the mask or the end of the keys crosses have hidden elements.
        const TileMask seen = TileMask::of(scoring_.mask, row0(), key0, in_.k.rows.read);
        if (!seen.sees_all(tile.m0, tile.n0))
            ctx_.map(scores_, [seen, kernel = has.mask](float s, int r, int c) {
                return seen.sees(r, c, kernel) ? s : never;
            });
    }

    /// F-6: shrink = exp2(old top − new top). A row that has seen nothing yet keeps top = −∞, shrink = 1 and weights of
    /// 0, never NaN.
    FMHA_DEVICE void logits_to_weights() {
        ctx_.raise_to_row_max(top_, shrink_, scores_);
        ctx_.exp2_minus(scores_, top_);
        ctx_.scale_rows(total_, shrink_);
        ctx_.add_row_sums(total_, scores_);
        ctx_.scale_rows(out_, shrink_);
    }

    /// F-9, after the sum, because the normaliser uses undropped weights (D-3).
    FMHA_DEVICE void drop(std::int64_t key0) {
        if constexpr (requires { args_.randval; }) {
            if (!scoring_.dropout.on) return;
            auto random = ctx_.random_bytes();
            ctx_.generate(random, scoring_.dropout.squares, row0(), key0);
            ctx_.drop(scores_, random, scoring_.dropout.threshold);
            if (args_.randval.present() && owns_rows()) ctx_.store(in_.randval, random, row0(), key0);
        }
    }

    template <class Weights>
    FMHA_DEVICE void multiply_values(Weights& weights, std::int64_t key0) {
        const Tile& tile = ctx_.cfg().algorithm.tile;
        const Matrix& values = in_.values(key0);
        FMHA_UNROLL
        for (int step = 0; step < ctx_.steps(tile.n0, in_.v.rows.read - key0, tile.k1); ++step) {
            ctx_.load(value_, values, key0 + step * tile.k1, channel0());
            ctx_.product(out_, weights, step * tile.k1, value_, scoring_.descale.v_at(args_.quant, key0));
        }
    }

    Ctx& ctx_;
    const Args& args_;
    const In& in_;
    const Scoring& scoring_;
    const FwdItem& item_;
    decltype(std::declval<Ctx&>().query()) query_;
    decltype(std::declval<Ctx&>().key()) key_;
    decltype(std::declval<Ctx&>().value()) value_;
    decltype(std::declval<Ctx&>().scores()) scores_;
    decltype(std::declval<Ctx&>().output()) out_;
    decltype(std::declval<Ctx&>().rows()) top_, total_, shrink_;
};

} // namespace fmha::kernels
