#pragma once

#include "kernels/programs/decisions.hpp"

#include <cstdint>

namespace fmha::kernels {

/// The scalar decisions of backward that are the same on every target, beside those of attention. A block context derives
/// from both; a test context hides single members to make a kernel wrong in one known way.
struct BwdDecisions {
    /// D = factor · Δ (W-1): p_undrop of D-2, also in kernels that know nothing else of dropout.
    FMHA_DEVICE float delta_factor(const DropoutArgs& dropout) const { return 1.0F - dropout.p_drop; }
    /// The sink's share of a row is exp of it (W-10).
    FMHA_DEVICE float sink_exponent(float sink, float lse) const { return sink - lse; }
    FMHA_DEVICE float sink_gradient_sign() const { return -1.0F; }
    /// The factor of dQ and dK (W-7, W-8).
    FMHA_DEVICE float gradient_scale(const ScoreArgs& score) const { return score.scale_s; }
    /// 1/p_undrop in dV (W-4).
    FMHA_DEVICE float value_rescale(const Dropout& dropout) const { return 1.0F / dropout.kept; }
    /// How many query heads a job with dK and dV of `heads` of them adds up (W-11), and which its n-th is.
    FMHA_DEVICE std::int64_t heads_of_job(std::int64_t heads) const { return heads; }
    FMHA_DEVICE std::int64_t head_of_job(std::int64_t first, std::int64_t n) const { return first + n; }
    /// How many splits of dQ are added, and which the n-th is.
    FMHA_DEVICE std::int64_t dq_splits(std::int64_t splits) const { return splits; }
    FMHA_DEVICE std::int64_t dq_split(std::int64_t n) const { return n; }
    /// Where a partial sum goes.
    FMHA_DEVICE std::int64_t target_split(std::int64_t split) const { return split; }
};

} // namespace fmha::kernels
