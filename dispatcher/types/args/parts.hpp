#pragma once

#include "dispatcher/types/tensor_view.hpp"

#include <cstdint>

/// The parts that the arguments of APIs are composed of. Every pointer is either absent (null) or valid for the lengths given; the problem that
/// the arguments belong to has been validated. Device code includes this file, so parts hold plain values only. Tensors are those of L-2.
namespace fmha {

/// Extents of a problem. In group mode seqlen_q and seqlen_k are ignored as lengths (N-2).
struct Shape {
    Mode mode = Mode::batch;
    std::int64_t batch = 0, nhead_q = 0, nhead_k = 0, seqlen_q = 0, seqlen_k = 0;
    std::int64_t max_seqlen_q = 0, min_seqlen_q = 0;
    std::int64_t hdim_q = 0, hdim_v = 0;
};

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

/// From products to logits and from rows to outputs: scales, soft-cap, ALiBi and sink logits. The elementwise bias is a
/// tensor beside Q, K and V, present exactly when `bias_type` is elementwise.
struct ScoreArgs {
    BiasType bias_type = BiasType::no_bias;
    const float* alibi_slopes = nullptr; ///< [nhead_q] or [batch, nhead_q] (A-1)
    std::int64_t alibi_stride = 0;       ///< 0 or nhead_q

    float scale_s = 0.0F; ///< resolved value (H-3), never 0 unless 0 is meant
    float scale_o = 1.0F;
    float logits_soft_cap = 0.0F;      ///< 0 = off, otherwise above 0 to 2.3586e38 (C-1)
    const float* sink_logit = nullptr; ///< [nhead_q], −∞ = absent for that head (K-4, K-5)
};

struct DropoutArgs {
    float p_drop = 0.0F; ///< 0 = off (D-1)
    std::uint64_t seed = 0, offset = 0;
};

/// Descales (section 15). pertensor: fp32 with all strides 0. blockscale: fp32 (b, h, block, 0), in group
/// mode the block index is block_scale_seqstart_*[b] + local block. mx: e8m0, Q and K (b, h, row, column
/// block of 32), V (b, h, key block of 32, channel); in group mode rows of Q and K are packed like the tensors
/// and V's key blocks start at block_scale_seqstart_k[b].
struct QuantArgs {
    QScale qscale = QScale::no_scale;
    TensorView q_descale, k_descale, v_descale;
    std::int64_t block_scale_size_q = 128, block_scale_size_k = 128;
    const std::int32_t* block_scale_seqstart_q = nullptr;
    const std::int32_t* block_scale_seqstart_k = nullptr;
};

/// Where keys and values of an entry lie (P-1 … P-6, B-1 … B-6). All null: contiguous, entry b in slot b. The view of a
/// page pool has one batch index a page, its rows are the slots of a page.
struct KvPlace {
    const std::int32_t* block_table = nullptr; ///< [batch, block_table_stride]: physical page of logical page
    std::int64_t block_table_stride = 0;
    const std::int32_t* kv_indptr = nullptr;         ///< [batch + 1] into kv_page_indices (B-4)
    const std::int32_t* kv_page_indices = nullptr;   ///< physical pages of all entries
    const std::int32_t* kv_last_page_lens = nullptr; ///< [batch]; null when page_size is 1
    const std::int32_t* cache_batch_idx = nullptr; ///< [batch]: cache slot of entry b, contiguous only (P-6)
    std::int64_t page_size = 0;                    ///< keys a page; 0 = not paged
    std::int64_t page_count = 0; ///< pages of the pool, or slots of a cache that is not paged: 0 = not known
    bool is_gappy = false;       ///< entry b begins at slot seqstart_k[b] mod page_size of its pages (P-2)
    KvLayout layout = KvLayout::unset;
    KvLookup lookup = KvLookup::unset;
};

/// Partial results of split-KV (S-3), fp32: O per split (b, h · num_splits + split, row, channel) and LSE
/// (b, h · num_splits + split, row, 0); in group mode the batch stride is 0 and rows are packed.
struct Partials {
    std::int64_t num_splits = 1;
    TensorView o_acc, lse_acc;
};

/// Rotary embedding (V-4): tables (0, 0, position, pair) in the type of K.
struct RopeArgs {
    Rope type = Rope::none;
    std::int64_t rotary_dim = 0;
    TensorView cos, sin;
};

} // namespace fmha
