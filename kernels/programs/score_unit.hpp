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
    /// Rows whose largest logit is so far from 0 or further have the next power of two in place of `in_logits` (tolerances B.2): that rounds nothing.
    float coarse_from = __builtin_inff();

    FMHA_DEVICE float factor(float top) const {
        const float exponent = __builtin_fmaf(-top, in_logits, shift);
        return __builtin_fabsf(exponent) < coarse_from ? in_logits : power();
    }
    /// Not above that of a smaller `top`, hence no power below `in_logits`. Finite, so that −∞ is infinitely far below.
    FMHA_DEVICE float reference(float top) const {
        return __builtin_fminf(__builtin_fmaf(-top, factor(top), shift), 0x1p127F);
    }

  private:
    FMHA_DEVICE float power() const {
        constexpr std::uint32_t below_next = 0x7FFFFF, exponent = 0xFF800000;
        return std::bit_cast<float>((std::bit_cast<std::uint32_t>(in_logits) + below_next) & exponent);
    }
};

} // namespace fmha::kernels
