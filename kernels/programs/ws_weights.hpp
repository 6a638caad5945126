#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/programs/score_unit.hpp"
#include "kernels/programs/ws_sums.hpp"

namespace fmha::kernels {

/// F-2 to F-6 where weights carry the factor of their type, 2^shift (T-6), from the exponential on, which saves a multiplication a weight: the exponent
/// is (score − top) · unit + shift, one operation behind the difference, and exactly `shift` for the largest score. Maxima are in units of the
/// scores meanwhile, in masked tiles too, and totals carry the factor as well.
struct CarriedWeights {
    bool in_products = false; ///< scores stay products; else they become logits first
    ScoreUnit unit;
    float ahead = 1.0F;     ///< the factor from products to logits, where there is nothing else between them
    float first_top = 0.0F; ///< the sink logit in units of the scores

    /// Whether kernels have such weights. Beside a generic mask the units of 128 channels would spill.
    FMHA_DEVICE static constexpr bool serve(const Signature& has) {
        return adds_tiles_apart(has.data_type) && has.mask != MaskClass::generic;
    }
    /// `factor` makes logits of products.
    template <class Ctx>
    FMHA_DEVICE static CarriedWeights of(Ctx& ctx, const Scoring& scoring, float factor) {
        CarriedWeights to;
        to.unit.shift = ctx.weight_shift();
        to.in_products = scales_alone(ctx.cfg().signature) && divides(factor, scoring.sink_top);
        (to.in_products ? to.unit.in_logits : to.ahead) = factor;
        to.first_top = scoring.sink_top == never ? never : ctx.quotient(scoring.sink_top, to.unit.in_logits);
        return to;
    }
    /// From the rows that `begin_rows` has made.
    template <class Ctx, class Rows>
    FMHA_DEVICE void begin(Ctx& ctx, Rows& top, Rows& total) const {
        if (in_products) ctx.fill(top, first_top);
        ctx.map_rows(total, total, top, [&](float sum, float t) { return sum * ctx.top_weight(t, unit); });
    }
    template <Masking masking, class Ctx, class Scores, class Args, class Rows>
    FMHA_DEVICE void weigh(Ctx& ctx, Scores& scores, const Args& args, const Scoring& scoring,
                           const Matrix& bias, std::int64_t row0, const KeyTile& at, Rows& top, Rows& total,
                           Rows& shrink, float slack) const {
        if (!scales_alone(ctx.cfg().signature)) {
            scores_to_logits<masking>(ctx, scores, args, scoring, bias, row0, at);
        } else if (masking != Masking::off) {
            ctx.map(scores, [factor = ahead](float s, int, int) { return s * factor; });
            bias_and_mask<masking>(ctx, scores, scoring, bias, at.end, row0, at.first);
        }
        ctx.raise_to_row_max(top, shrink, scores, unit, slack);
        ctx.exp2_minus(scores, top, unit);
        ctx.scale_rows(total, shrink);
        ctx.add_row_parts(total, scores);
    }
    /// Maxima in base-2 logits, and totals of weights.
    template <class Ctx, class Rows>
    FMHA_DEVICE void end(Ctx& ctx, const Scoring& scoring, Rows& top, Rows& total) const {
        ctx.map_rows(total, total, top,
                     [&](float sum, float t) { return ctx.quotient(sum, ctx.top_weight(t, unit)); });
        if (!in_products) return;
        ctx.map_rows(top, top, top,
                     [&](float t, float) { return t == first_top ? scoring.sink_top : t * unit.in_logits; });
    }

  private:
    /// Whether a logit is a product times `factor`, and the sink logit can be divided by that.
    FMHA_DEVICE static bool divides(float factor, float sink_top) {
        constexpr float small = 0x1p-60F, large = 0x1p60F;
        return factor > small && factor < large && (sink_top == never || __builtin_fabsf(sink_top) < large);
    }
};

} // namespace fmha::kernels
