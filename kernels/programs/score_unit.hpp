#pragma once

namespace fmha::kernels {

/// The base-2 logits of a score of 1, where maxima of rows are in units of the scores. Above 0.
struct ScoreUnit {
    float in_logits = 1.0F;
};

} // namespace fmha::kernels
