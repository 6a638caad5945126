#pragma once

#include "dispatcher/types/args/parts.hpp"

namespace fmha {

/// Gradients of forward attention (section 20). O and LSE are forward's results.
struct BwdArgs {
    Shape shape;
    TensorView q, k, v, o, lse, bias, d_o;
    TensorView
        randval;  ///< uint8, (b, h, row, key); present when forward's bytes are given instead of replayed
    TensorView d; ///< fp32, (b, h, row, 0): p_undrop · Δ (W-1)
    TensorView dq;
    TensorView dk, dv; ///< one row a key of every query head, or of every KV head with reduce_dk_dv (W-11)
    TensorView dbias;  ///< (b, h, row, key), never reduced (W-12); absent = not wanted
    float* d_sink = nullptr; ///< [nhead_q], overwritten (W-13); null = not wanted
    LengthArrays lengths;
    MaskArgs mask;
    ScoreArgs score;
    DropoutArgs dropout;
    void* workspace = nullptr; ///< of X-1, prepared
    bool deterministic = false;
    bool reduce_dk_dv = false;
};

} // namespace fmha
