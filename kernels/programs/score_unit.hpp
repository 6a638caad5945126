#pragma once

namespace fmha::kernels {

/// What a score is in base-2 logits, where maxima of rows are in units of the scores. Above 0.
struct ScoreUnit {
    float in_logits = 1.0F;
};

} // namespace fmha::kernels
