#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/programs/score_unit.hpp"
#include "kernels/programs/ws_sums.hpp"

namespace fmha::kernels {

/// F-2 to F-6 with one operation a weight in front of the exponential, whose argument is score · factor + (shift − top · factor). So weights carry
/// the factor of their type, 2^shift (T-6), and one of their row, 2^residue, of what top · factor was rounded by (tolerances B.2). Maxima are in
/// units of the scores meanwhile, in masked tiles too, so that a row does not depend on others; totals carry both factors as well.
struct CarriedWeights {
    bool in_products = true; ///< scores stay products, unless `of` says that they become logits first
    ScoreUnit unit;

    /// Whether a kernel has such weights. Of e4m3 the units of 128 channels would spill beside a generic mask; more channels of 16 bits gain nothing,
    /// and have maxima that lag behind.
    FMHA_DEVICE static constexpr bool serve(const KernelConfig& cfg) {
        const Signature& has = cfg.signature;
        if (adds_tiles_apart(has.data_type)) return has.mask != MaskClass::generic;
        return scales_alone(has) && cfg.algorithm.tile.n1 <= 128;
    }
    /// `factor` makes logits of products.
    template <class Ctx>
    FMHA_DEVICE static CarriedWeights of(Ctx& ctx, const Scoring& scoring, float factor) {
        CarriedWeights to;
        to.in_products = scales_alone(ctx.cfg().signature) && divides(ctx, scoring, factor);
        const float shift = ctx.weight_shift();
        to.unit = ScoreUnit::of(to.in_products ? factor : 1.0F, shift, shift > 0.0F ? 0x1p19F : 0x1p26F);
        return to;
    }
    /// From the rows that `begin_rows` has made.
    template <class Ctx, class Rows>
    FMHA_DEVICE void begin(Ctx& ctx, Rows& top, Rows& reference, Rows& total) const {
        if (in_products && ctx.cfg().signature.has_sink_logit)
            ctx.map_rows(top, top, top, [&](float sink_top, float) { return in_scores(ctx, sink_top); });
        ctx.map_rows(reference, top, top, [&](float t, float) { return unit.reference(t); });
        if (ctx.cfg().signature.has_sink_logit)
            ctx.map_rows(total, total, top,
                         [&](float sum, float t) { return sum * ctx.top_weight(t, unit); });
    }
    /// Of scores that are products where `in_products`, else logits; −∞ where a key is hidden.
    template <class Ctx, class Scores, class Rows>
    FMHA_DEVICE void weigh(Ctx& ctx, Scores& scores, Rows& top, Rows& reference, Rows& total,
                           Rows& shrink) const {
        ctx.raise_to_row_max(top, shrink, scores, reference, unit);
        ctx.exp2_minus(scores, top, reference, unit);
        ctx.scale_rows(total, shrink);
        ctx.add_row_parts(total, scores);
    }
    /// Maxima in base-2 logits, and totals relative to the weight of the largest score. The output is divided by `divisor`: products of values took
    /// that weight rounded to its type, so that a single key, or several equal ones, give their values exactly.
    template <class Ctx, class Rows>
    FMHA_DEVICE void end(Ctx& ctx, const Scoring& scoring, Rows& top, Rows& total, Rows& divisor) const {
        ctx.map_rows(total, total, top,
                     [&](float sum, float t) { return ctx.quotient(sum, ctx.top_weight(t, unit)); });
        ctx.map_rows(divisor, top, top, [&](float t, float) {
            return ctx.narrowed(ctx.top_weight(t, unit)) * ctx.weight_unit();
        });
        ctx.map_rows(divisor, divisor, total, [](float weight, float sum) { return weight * sum; });
        if (!in_products) return;
        auto sinks = ctx.rows();
        ctx.set_rows(sinks, [&](int r) {
            return scoring.sinks != nullptr ? ctx.to_base2(scoring.sink_of(r)) : scoring.sink_top;
        });
        ctx.map_rows(top, top, sinks, [&](float t, float sink_top) {
            return t == in_scores(ctx, sink_top) ? sink_top : t * unit.in_logits;
        });
    }

  private:
    /// A sink logit in units of the scores.
    template <class Ctx>
    FMHA_DEVICE float in_scores(Ctx& ctx, float sink_top) const {
        return sink_top == never ? never : ctx.quotient(sink_top, unit.in_logits);
    }
    /// Whether a logit is a product times `factor`, and the sink logits can be divided by that.
    template <class Ctx>
    FMHA_DEVICE static bool divides(Ctx& ctx, const Scoring& scoring, float factor) {
        constexpr float small = 0x1p-60F, large = 0x1p60F;
        const auto fits = [](float sink_top) {
            return sink_top == never || __builtin_fabsf(sink_top) < large;
        };
        bool all = factor > small && factor < large && fits(scoring.sink_top);
        const std::int64_t heads =
            scoring.sinks != nullptr ? scoring.heads.heads(ctx.cfg().algorithm.tile.m0) : 0;
        for (std::int64_t h = 0; h < heads; ++h) all = fits(ctx.to_base2(scoring.sinks[h])) && all;
        return all;
    }
};

} // namespace fmha::kernels
