#pragma once

#include "kernels/programs/device.hpp"

namespace fmha::kernels {

/// Exponents of weights, score · in_logits + reference(top), where maxima of rows are in units of the scores. That of the largest score is
/// `shift` but for what its product was rounded by.
struct ScoreUnit {
    float in_logits = 1.0F; ///< the base-2 logits of a score of 1, above 0
    float shift = 0.0F;

    FMHA_DEVICE float reference(float top) const { return __builtin_fmaf(-top, in_logits, shift); }
    FMHA_DEVICE float exponent(float score, float reference) const {
        return __builtin_fmaf(score, in_logits, reference);
    }
};

} // namespace fmha::kernels
