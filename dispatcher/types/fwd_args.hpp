#pragma once

#include "dispatcher/types/tensor_view.hpp"

#include <cstdint>

namespace fmha {

/// Lengths as the caller gave them, host or device pointers like the tensors (N-1, N-2, N-3). `seqstart_*` has
/// batch + 1 physical offsets (group mode); logical lengths come as `seqlen_*` [batch] or cumulative
/// `cu_seqlen_*` [batch + 1], never both on one side.
struct LengthArrays {
    const std::int32_t* seqstart_q = nullptr;
    const std::int32_t* seqstart_k = nullptr;
    const std::int32_t* seqlen_q = nullptr;
    const std::int32_t* seqlen_k = nullptr;
    const std::int32_t* cu_seqlen_q = nullptr;
    const std::int32_t* cu_seqlen_k = nullptr;
};

/// The run-time part of a mask (M-1, M-7, K-1). For top_left and bottom_right a negative side is unbounded;
/// for window_generic (y, x) the literal window is left = y − 1, right = x − 1.
struct MaskArgs {
    MaskType type = MaskType::no_mask;
    std::int64_t left = -1;
    std::int64_t right = -1;
    std::int64_t sink = 0;
};

/// Arguments of forward attention. Every pointer is either absent (null) or valid for the lengths given; the
/// problem that they belong to has been validated. Tensors are those of L-2.
struct FwdArgs {
    Mode mode = Mode::batch;
    /// In group mode seqlen_q and seqlen_k are ignored as lengths (N-2).
    std::int64_t batch = 0, nhead_q = 0, nhead_k = 0, seqlen_q = 0, seqlen_k = 0;
    std::int64_t max_seqlen_q = 0, min_seqlen_q = 0;
    std::int64_t hdim_q = 0, hdim_v = 0;

    TensorView q, k, v, o;
    TensorView lse;     ///< fp32, (b, h, row, 0)
    TensorView bias;    ///< (b, h, row, key); present exactly when bias_type is elementwise
    TensorView randval; ///< uint8, (b, h, row, key); present when random bytes are to be stored
    LengthArrays lengths;
    MaskArgs mask;

    BiasType bias_type = BiasType::no_bias;
    const float* alibi_slopes = nullptr; ///< [nhead_q] or [batch, nhead_q] (A-1)
    std::int64_t alibi_stride = 0;

    float scale_s = 0.0F; ///< resolved value (H-3), never 0 unless 0 is meant
    float scale_o = 1.0F;
    float logits_soft_cap = 0.0F;      ///< 0 = off, otherwise > 0 (C-1)
    const float* sink_logit = nullptr; ///< [nhead_q], −∞ = absent for that head (K-4, K-5)

    float p_drop = 0.0F; ///< 0 = off (D-1)
    std::uint64_t seed = 0, offset = 0;

    QScale qscale = QScale::no_scale;
    /// Descales (section 15). pertensor: fp32 with all strides 0. blockscale: fp32 (b, h, block, 0), in group
    /// mode the block index is block_scale_seqstart_*[b] + local block. mx: e8m0, Q and K (b, h, row, column
    /// block of 32), V (b, h, key block of 32, channel); in group mode rows of Q and K are packed like the tensors
    /// and V's key blocks start at block_scale_seqstart_k[b].
    TensorView q_descale, k_descale, v_descale;
    std::int64_t block_scale_size_q = 128, block_scale_size_k = 128;
    const std::int32_t* block_scale_seqstart_q = nullptr;
    const std::int32_t* block_scale_seqstart_k = nullptr;
};

} // namespace fmha
