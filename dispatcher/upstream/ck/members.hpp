#pragma once

/// Members of the structures through which callers of Composable Kernel's 01_fmha pose a problem, in order, as they stood in
/// May 2026. `X(type, name)`; types are those of basics.hpp. Declarations, the checks of a checkout's own declarations, and the
/// tests are all made from these lists.

// The formatter takes the entries for calls.
// clang-format off

#define FMHA_CK_FWD_ARGS(X) \
    X(const void*, q_ptr) X(const void*, k_ptr) X(const void*, v_ptr) X(const void*, bias_ptr) \
    X(const void*, q_descale_ptr) X(const void*, k_descale_ptr) X(const void*, v_descale_ptr) \
    X(void*, rand_val_ptr) X(void*, lse_ptr) X(void*, o_ptr) X(const void*, seqstart_q_ptr) \
    X(const void*, seqstart_k_ptr) X(const void*, seqlen_q_ptr) X(const void*, seqlen_k_ptr) \
    X(const void*, cu_seqlen_q_ptr) X(const void*, cu_seqlen_k_ptr) \
    X(const void*, block_scale_seqstart_q_ptr) X(const void*, block_scale_seqstart_k_ptr) \
    X(const void*, seqstart_v_scale_ptr) X(const void*, sink_ptr) X(index_t, seqlen_q) X(index_t, seqlen_k) \
    X(index_t, batch) X(index_t, max_seqlen_q) X(index_t, hdim_q) X(index_t, hdim_v) X(index_t, nhead_q) \
    X(index_t, nhead_k) X(index_t, num_head_q_total) X(index_t, head_start) X(float, scale_s) \
    X(float, logits_soft_cap) X(index_t, stride_q) X(index_t, stride_k) X(index_t, stride_v) \
    X(index_t, stride_bias) X(index_t, stride_randval) X(index_t, stride_o) X(index_t, stride_q_descale) \
    X(index_t, stride_k_descale) X(index_t, stride_v_descale) X(index_t, nhead_stride_q) \
    X(index_t, nhead_stride_k) X(index_t, nhead_stride_v) X(index_t, nhead_stride_bias) \
    X(index_t, nhead_stride_randval) X(index_t, nhead_stride_lse) X(index_t, nhead_stride_o) \
    X(index_t, nhead_stride_q_descale) X(index_t, nhead_stride_k_descale) X(index_t, nhead_stride_v_descale) \
    X(index_t, batch_stride_q) X(index_t, batch_stride_k) X(index_t, batch_stride_v) \
    X(index_t, batch_stride_bias) X(index_t, batch_stride_randval) X(index_t, batch_stride_lse) \
    X(index_t, batch_stride_o) X(index_t, batch_stride_q_descale) X(index_t, batch_stride_k_descale) \
    X(index_t, batch_stride_v_descale) X(index_t, window_size_left) X(index_t, window_size_right) \
    X(index_t, sink_size) X(index_t, mask_type) X(index_t, min_seqlen_q) X(float, p_drop) X(bool, s_randval) \
    X(seed_and_offset, drop_seed_offset) X(index_t, block_scale_size_q) X(index_t, block_scale_size_kv)

#define FMHA_CK_FWD_TRAITS(X) \
    X(int, hdim_q) X(int, hdim_v) X(std::string, data_type) X(bool, is_group_mode) X(bool, is_v_rowmajor) \
    X(bool, has_logits_soft_cap) X(mask_enum, mask_type) X(bias_enum, bias_type) X(bool, has_lse) \
    X(bool, has_dropout) X(quant_scale_enum, qscale_type) X(bool, skip_min_seqlen_q) X(bool, has_sink)

#define FMHA_CK_FWD_PAGEDKV_ARGS(X) \
    X(const void*, q_ptr) X(const void*, k_ptr) X(const void*, v_ptr) X(const void*, bias_ptr) \
    X(void*, lse_ptr) X(void*, o_ptr) X(void*, block_table_ptr) X(index_t, batch_stride_block_table) \
    X(index_t, page_block_size) X(bool, is_gappy) X(const void*, cache_batch_idx) \
    X(const void*, seqstart_q_ptr) X(const void*, seqstart_k_ptr) X(const void*, seqlen_k_ptr) \
    X(const void*, sink_ptr) X(index_t, seqlen_q) X(index_t, seqlen_k) X(index_t, batch) \
    X(index_t, max_seqlen_q) X(index_t, hdim_q) X(index_t, hdim_v) X(index_t, nhead_q) X(index_t, nhead_k) \
    X(float, scale_s) X(float, scale_p) X(float, scale_o) X(float, logits_soft_cap) X(index_t, stride_q) \
    X(index_t, stride_k) X(index_t, stride_v) X(index_t, stride_bias) X(index_t, stride_o) \
    X(index_t, nhead_stride_q) X(index_t, nhead_stride_k) X(index_t, nhead_stride_v) \
    X(index_t, nhead_stride_bias) X(index_t, nhead_stride_lse) X(index_t, nhead_stride_o) \
    X(index_t, batch_stride_q) X(index_t, batch_stride_k) X(index_t, batch_stride_v) \
    X(index_t, batch_stride_bias) X(index_t, batch_stride_lse) X(index_t, batch_stride_o) \
    X(index_t, window_size_left) X(index_t, window_size_right) X(index_t, sink_size) X(index_t, mask_type) \
    X(index_t, min_seqlen_q)

#define FMHA_CK_FWD_PAGEDKV_TRAITS(X) \
    X(int, hdim_q) X(int, hdim_v) X(std::string, data_type) X(bool, is_group_mode) X(bool, is_v_rowmajor) \
    X(bool, has_logits_soft_cap) X(mask_enum, mask_type) X(bias_enum, bias_type) X(bool, has_lse) \
    X(bool, use_pagedkv) X(bool, do_fp8_static_quant) X(bool, skip_min_seqlen_q) X(bool, has_sink)

#define FMHA_CK_FWD_SPLITKV_ARGS(X) \
    X(const void*, q_ptr) X(const void*, k_ptr) X(const void*, v_ptr) X(const void*, bias_ptr) \
    X(void*, lse_acc_ptr) X(void*, o_acc_ptr) X(void*, lse_ptr) X(void*, o_ptr) X(void*, block_table_ptr) \
    X(index_t, batch_stride_block_table) X(index_t, page_block_size) X(bool, is_gappy) \
    X(const void*, cache_batch_idx) X(const void*, seqstart_q_ptr) X(const void*, seqstart_k_ptr) \
    X(const void*, seqlen_k_ptr) X(const void*, sink_ptr) X(index_t, seqlen_q) X(index_t, seqlen_k) \
    X(index_t, batch) X(index_t, max_seqlen_q) X(index_t, hdim_q) X(index_t, hdim_v) X(index_t, nhead_q) \
    X(index_t, nhead_k) X(index_t, num_splits) X(float, scale_s) X(float, scale_p) X(float, scale_o) \
    X(float, logits_soft_cap) X(index_t, stride_q) X(index_t, stride_k) X(index_t, stride_v) \
    X(index_t, stride_bias) X(index_t, stride_o_acc) X(index_t, stride_o) X(index_t, nhead_stride_q) \
    X(index_t, nhead_stride_k) X(index_t, nhead_stride_v) X(index_t, nhead_stride_bias) \
    X(index_t, nhead_stride_lse) X(index_t, nhead_stride_lse_acc) X(index_t, nhead_stride_o_acc) \
    X(index_t, nhead_stride_o) X(index_t, batch_stride_q) X(index_t, batch_stride_k) \
    X(index_t, batch_stride_v) X(index_t, batch_stride_bias) X(index_t, batch_stride_lse) \
    X(index_t, batch_stride_lse_acc) X(index_t, batch_stride_o_acc) X(index_t, batch_stride_o) \
    X(index_t, split_stride_lse_acc) X(index_t, split_stride_o_acc) X(index_t, window_size_left) \
    X(index_t, window_size_right) X(index_t, sink_size) X(index_t, mask_type)

#define FMHA_CK_FWD_SPLITKV_TRAITS(X) \
    X(int, hdim_q) X(int, hdim_v) X(std::string, data_type) X(bool, is_group_mode) X(bool, is_v_rowmajor) \
    X(bool, has_logits_soft_cap) X(mask_enum, mask_type) X(bias_enum, bias_type) X(bool, has_lse) \
    X(bool, do_fp8_static_quant) X(bool, has_sink)

#define FMHA_CK_FWD_APPENDKV_ARGS(X) \
    X(void*, q_ptr) X(void*, k_ptr) X(const void*, knew_ptr) X(void*, v_ptr) X(const void*, vnew_ptr) \
    X(const void*, seqlen_k_ptr) X(index_t, seqlen_q) X(index_t, seqlen_knew) X(index_t, batch) \
    X(index_t, hdim_q) X(index_t, hdim_v) X(index_t, nhead_q) X(index_t, nhead_k) \
    X(const void*, rotary_cos_ptr) X(const void*, rotary_sin_ptr) X(index_t, rotary_dim) X(bool, has_mask) \
    X(void*, block_table_ptr) X(index_t, batch_stride_block_table) X(index_t, page_block_size) \
    X(const void*, cache_batch_idx) X(const void*, sink_ptr) X(index_t, stride_q) X(index_t, stride_k) \
    X(index_t, stride_knew) X(index_t, stride_v) X(index_t, stride_vnew) X(index_t, nhead_stride_q) \
    X(index_t, nhead_stride_k) X(index_t, nhead_stride_knew) X(index_t, nhead_stride_v) \
    X(index_t, nhead_stride_vnew) X(index_t, batch_stride_q) X(index_t, batch_stride_k) \
    X(index_t, batch_stride_knew) X(index_t, batch_stride_v) X(index_t, batch_stride_vnew)

#define FMHA_CK_FWD_APPENDKV_TRAITS(X) \
    X(int, hdim_q) X(int, hdim_v) X(std::string, data_type) X(bool, is_v_rowmajor) X(rope_enum, rope_type)

#define FMHA_CK_BATCH_PREFILL_ARGS(X) \
    X(const void*, q_ptr) X(const void*, k_ptr) X(const void*, v_ptr) X(const void*, bias_ptr) \
    X(const void*, q_descale_ptr) X(const void*, k_descale_ptr) X(const void*, v_descale_ptr) \
    X(void*, rand_val_ptr) X(void*, lse_ptr) X(void*, o_ptr) X(const void*, seqstart_q_ptr) \
    X(const void*, sink_ptr) X(index_t, seqlen_q) X(index_t, seqlen_k) X(index_t, batch) \
    X(index_t, max_seqlen_q) X(index_t, hdim_q) X(index_t, hdim_v) X(index_t, nhead_q) X(index_t, nhead_k) \
    X(std::int32_t, num_total_pages) X(index_t, page_block_size) X(kv_memory_layout_enum, kv_memory_layout) \
    X(kv_lookup_table_enum, kv_lookup_table) X(void*, kv_indptr) X(void*, kv_page_indices) \
    X(void*, kv_last_page_lens) X(void*, seqlen_k_ptr) X(index_t, batch_stride_block_table) \
    X(float, scale_s) X(float, scale_p) X(float, scale_o) X(float, logits_soft_cap) X(index_t, stride_q) \
    X(index_t, stride_k) X(index_t, stride_v) X(index_t, stride_bias) X(index_t, stride_randval) \
    X(index_t, stride_o) X(index_t, nhead_stride_q) X(index_t, nhead_stride_k) X(index_t, nhead_stride_v) \
    X(index_t, nhead_stride_bias) X(index_t, nhead_stride_randval) X(index_t, nhead_stride_lse) \
    X(index_t, nhead_stride_o) X(index_t, batch_stride_q) X(index_t, batch_stride_k) \
    X(index_t, batch_stride_v) X(index_t, batch_stride_bias) X(index_t, batch_stride_randval) \
    X(index_t, batch_stride_lse) X(index_t, batch_stride_o) X(index_t, window_size_left) \
    X(index_t, window_size_right) X(index_t, sink_size) X(index_t, mask_type) X(float, p_drop) \
    X(bool, s_randval) X(seed_and_offset, drop_seed_offset) X(index_t, nblock_stride_kv_block_descale) \
    X(index_t, nhead_stride_kv_block_descale)

/// Those that it has beyond the forward traits, from which it derives.
#define FMHA_CK_BATCH_PREFILL_TRAITS(X) \
    X(kv_memory_layout_enum, kv_memory_layout) X(kv_lookup_table_enum, kv_lookup_table) X(int, page_size)

#define FMHA_CK_BWD_ARGS(X) \
    X(const void*, q_ptr) X(const void*, k_ptr) X(const void*, v_ptr) X(const void*, bias_ptr) \
    X(const void*, o_ptr) X(const void*, lse_ptr) X(const void*, do_ptr) X(void*, d_ptr) \
    X(void*, rand_val_ptr) X(void*, dq_ptr) X(void*, dk_ptr) X(void*, dv_ptr) X(void*, dbias_ptr) \
    X(void*, workspace_ptr) X(const void*, sink_ptr) X(void*, d_sink_ptr) X(const void*, seqstart_q_ptr) \
    X(const void*, seqstart_k_ptr) X(const void*, seqlen_q_ptr) X(const void*, seqlen_k_ptr) \
    X(const void*, cu_seqlen_q_ptr) X(const void*, cu_seqlen_k_ptr) X(index_t, seqlen_q) \
    X(index_t, seqlen_k) X(index_t, batch) X(index_t, max_seqlen_q) X(index_t, max_seqlen_k) \
    X(index_t, hdim_q) X(index_t, hdim_v) X(index_t, nhead_q) X(index_t, nhead_k) X(float, scale) \
    X(index_t, stride_q) X(index_t, stride_k) X(index_t, stride_v) X(index_t, stride_bias) \
    X(index_t, stride_o) X(index_t, stride_randval) X(index_t, stride_do) X(index_t, stride_dq) \
    X(index_t, stride_dk) X(index_t, stride_dv) X(index_t, stride_dbias) X(index_t, nhead_stride_q) \
    X(index_t, nhead_stride_k) X(index_t, nhead_stride_v) X(index_t, nhead_stride_bias) \
    X(index_t, nhead_stride_o) X(index_t, nhead_stride_randval) X(index_t, nhead_stride_do) \
    X(index_t, nhead_stride_lsed) X(index_t, nhead_stride_dq) X(index_t, nhead_stride_dk) \
    X(index_t, nhead_stride_dv) X(index_t, nhead_stride_dbias) X(index_t, batch_stride_q) \
    X(index_t, batch_stride_k) X(index_t, batch_stride_v) X(index_t, batch_stride_bias) \
    X(index_t, batch_stride_o) X(index_t, batch_stride_randval) X(index_t, batch_stride_do) \
    X(index_t, batch_stride_lsed) X(index_t, batch_stride_dq) X(index_t, batch_stride_dk) \
    X(index_t, batch_stride_dv) X(index_t, batch_stride_dbias) X(index_t, window_size_left) \
    X(index_t, window_size_right) X(index_t, mask_type) X(float, p_drop) X(float, p_undrop) \
    X(seed_and_offset, drop_seed_offset)

#define FMHA_CK_BWD_TRAITS(X) \
    X(int, seqlen_q) X(int, seqlen_k) X(int, batch) X(int, max_seqlen_q) X(int, max_seqlen_k) X(int, hdim_q) \
    X(int, hdim_v) X(int, nhead_q) X(int, nhead_k) X(std::string, data_type) X(bool, is_group_mode) \
    X(mask_enum, mask_type) X(bias_enum, bias_type) X(bool, has_dbias) X(bool, has_dropout) \
    X(bool, is_store_randval) X(bool, is_deterministic)

// clang-format on
