#pragma once

#include "kernels/programs/device.hpp"

#include <bit>
#include <cstdint>

namespace fmha::kernels {

/// Exponents of weights, score · factor(top) + reference(top), where maxima of rows are in units of the scores. That of the largest score is
/// `shift` but for what top · factor(top) was rounded by.
struct ScoreUnit {
    float in_logits = 1.0F; ///< the base-2 logits of a score of 1, above 0
    float shift = 0.0F;
    /// Rows whose largest score is at least `power_from` away from 0 take `power`, the next power of two, in place of `in_logits` (tolerances B.2):
    /// a product with it rounds nothing.
    float power_from = __builtin_inff(), power = 1.0F;

    /// `logits`: a power of two; rows whose largest logit is as large take `power`.
    FMHA_DEVICE static ScoreUnit of(float in_logits, float shift, float logits) {
        constexpr std::uint32_t below_next = 0x7FFFFF, exponent = 0xFF800000, twice_bias = 0x7F000000;
        const std::uint32_t power = (std::bit_cast<std::uint32_t>(in_logits) + below_next) & exponent;
        return {in_logits, shift,
                std::bit_cast<float>(std::bit_cast<std::uint32_t>(logits) + (twice_bias >> 1U) - power),
                std::bit_cast<float>(power)};
    }
    FMHA_DEVICE float factor(float top) const {
        return __builtin_fabsf(top) < power_from ? in_logits : power;
    }
    /// Never grows with `top`, hence no power below `in_logits`. Finite, so that −∞ is infinitely far below.
    FMHA_DEVICE float reference(float top) const {
        return __builtin_fminf(__builtin_fmaf(-top, factor(top), shift), 0x1p127F);
    }
};

} // namespace fmha::kernels
