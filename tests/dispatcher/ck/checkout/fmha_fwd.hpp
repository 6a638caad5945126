#pragma once
// Stands in for a checkout: the structures as they stood in May 2026, in the global namespace and written out here once more, so that the lists of
// the adapter (dispatcher/upstream/ck/members.hpp) are compared with something else than themselves; with one FAULT_… at a time.
#include "bias.hpp"
#include "mask.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

enum class quant_scale_enum { no_scale, pertensor, blockscale, kv_blockscale, mx, per_token_head };
enum class rope_enum { none, interleaved, half_rotated };
namespace ck_tile {
enum class BlockAttentionKVCacheMemoryLayoutEnum { VECTORIZED_LAYOUT, LINEAR_LAYOUT };
enum class BlockAttentionKVCacheLookupTableEnum { VLLM_BLOCK_TABLE_2D, SGLANG_PAGE_TABLE_1D };
} // namespace ck_tile
using ck_tile::index_t;
using kv_memory_layout_enum = ck_tile::BlockAttentionKVCacheMemoryLayoutEnum;
using kv_lookup_table_enum = ck_tile::BlockAttentionKVCacheLookupTableEnum;
using seed_and_offset =
    std::variant<std::pair<std::uint64_t, std::uint64_t>, std::pair<const void*, const void*>>;

struct FmhaMasks {};
struct fmha_fwd_args {
    const void *q_ptr, *k_ptr, *v_ptr, *bias_ptr, *q_descale_ptr, *k_descale_ptr, *v_descale_ptr;
    void *rand_val_ptr, *lse_ptr, *o_ptr;
    const void* seqstart_q_ptr = nullptr;
    const void* seqstart_k_ptr = nullptr;
    const void* seqlen_q_ptr = nullptr;
    const void* seqlen_k_ptr = nullptr;
    const void* cu_seqlen_q_ptr = nullptr;
    const void* cu_seqlen_k_ptr = nullptr;
    const void *block_scale_seqstart_q_ptr, *block_scale_seqstart_k_ptr, *seqstart_v_scale_ptr, *sink_ptr;
    index_t seqlen_q, seqlen_k, batch, max_seqlen_q, hdim_q, hdim_v, nhead_q, nhead_k;
    index_t num_head_q_total = 0;
    index_t head_start = 0;
    float scale_s, logits_soft_cap;
    index_t stride_q, stride_k, stride_v, stride_bias, stride_randval, stride_o;
    index_t stride_q_descale, stride_k_descale, stride_v_descale;
    index_t nhead_stride_q, nhead_stride_k, nhead_stride_v, nhead_stride_bias, nhead_stride_randval;
    index_t nhead_stride_lse, nhead_stride_o;
    index_t nhead_stride_q_descale, nhead_stride_k_descale, nhead_stride_v_descale;
    index_t batch_stride_q, batch_stride_k, batch_stride_v, batch_stride_bias, batch_stride_randval;
    index_t batch_stride_lse, batch_stride_o;
    index_t batch_stride_q_descale, batch_stride_k_descale, batch_stride_v_descale;
    index_t window_size_left, window_size_right, sink_size, mask_type, min_seqlen_q;
    float p_drop;
    bool s_randval;
    seed_and_offset drop_seed_offset;
    index_t block_scale_size_q, block_scale_size_kv;
#ifdef FAULT_ADDED
    const void* p_scale_ptr;
#endif
};
#ifdef FAULT_DROPPED
#define has_sink has_a_sink
#endif
#ifdef FAULT_TYPE
using hdim_type = long;
#else
using hdim_type = int;
#endif
struct fmha_fwd_traits {
    hdim_type hdim_q;
    int hdim_v;
    std::string data_type;
    bool is_group_mode, is_v_rowmajor, has_logits_soft_cap;
    mask_enum mask_type;
    bias_enum bias_type;
    bool has_lse, has_dropout;
    quant_scale_enum qscale_type;
    bool skip_min_seqlen_q = false;
    bool has_sink = false;
};
#undef has_sink
struct fmha_fwd_pagedkv_args {
    const void *q_ptr, *k_ptr, *v_ptr, *bias_ptr;
    void *lse_ptr, *o_ptr, *block_table_ptr;
    index_t batch_stride_block_table, page_block_size;
    bool is_gappy;
    const void *cache_batch_idx, *seqstart_q_ptr, *seqstart_k_ptr, *seqlen_k_ptr, *sink_ptr;
    index_t seqlen_q, seqlen_k, batch, max_seqlen_q, hdim_q, hdim_v, nhead_q, nhead_k;
    float scale_s, scale_p, scale_o, logits_soft_cap;
    index_t stride_q, stride_k, stride_v, stride_bias, stride_o;
    index_t nhead_stride_q, nhead_stride_k, nhead_stride_v, nhead_stride_bias, nhead_stride_lse;
    index_t nhead_stride_o;
    index_t batch_stride_q, batch_stride_k, batch_stride_v, batch_stride_bias, batch_stride_lse;
    index_t batch_stride_o;
    index_t window_size_left, window_size_right, sink_size, mask_type, min_seqlen_q;
};
struct fmha_fwd_pagedkv_traits {
    int hdim_q, hdim_v;
    std::string data_type;
    bool is_group_mode, is_v_rowmajor, has_logits_soft_cap;
    mask_enum mask_type;
    bias_enum bias_type;
    bool has_lse = false;
    bool use_pagedkv = true;
    bool do_fp8_static_quant = false;
    bool skip_min_seqlen_q = false;
    bool has_sink = false;
};
struct fmha_fwd_splitkv_args {
    const void *q_ptr, *k_ptr, *v_ptr, *bias_ptr;
    void *lse_acc_ptr, *o_acc_ptr, *lse_ptr, *o_ptr, *block_table_ptr;
    index_t batch_stride_block_table, page_block_size;
    bool is_gappy;
    const void *cache_batch_idx, *seqstart_q_ptr, *seqstart_k_ptr, *seqlen_k_ptr, *sink_ptr;
    index_t seqlen_q, seqlen_k, batch, max_seqlen_q, hdim_q, hdim_v, nhead_q, nhead_k, num_splits;
    float scale_s, scale_p, scale_o, logits_soft_cap;
    index_t stride_q, stride_k, stride_v, stride_bias, stride_o_acc, stride_o;
    index_t nhead_stride_q, nhead_stride_k, nhead_stride_v, nhead_stride_bias, nhead_stride_lse;
    index_t nhead_stride_lse_acc, nhead_stride_o_acc, nhead_stride_o;
    index_t batch_stride_q, batch_stride_k, batch_stride_v, batch_stride_bias, batch_stride_lse;
    index_t batch_stride_lse_acc, batch_stride_o_acc, batch_stride_o;
    index_t split_stride_lse_acc, split_stride_o_acc;
    index_t window_size_left, window_size_right, sink_size, mask_type;
};
struct fmha_fwd_splitkv_traits {
    int hdim_q, hdim_v;
    std::string data_type;
    bool is_group_mode, is_v_rowmajor, has_logits_soft_cap;
    mask_enum mask_type;
    bias_enum bias_type;
    bool has_lse;
    bool do_fp8_static_quant = false;
    bool has_sink = false;
};
struct fmha_fwd_appendkv_args {
    void *q_ptr, *k_ptr;
    const void* knew_ptr;
    void* v_ptr;
    const void *vnew_ptr, *seqlen_k_ptr;
    index_t seqlen_q, seqlen_knew, batch, hdim_q, hdim_v, nhead_q, nhead_k;
    const void *rotary_cos_ptr, *rotary_sin_ptr;
    index_t rotary_dim;
    bool has_mask;
    void* block_table_ptr;
    index_t batch_stride_block_table, page_block_size;
    const void *cache_batch_idx, *sink_ptr;
    index_t stride_q, stride_k, stride_knew, stride_v, stride_vnew;
    index_t nhead_stride_q, nhead_stride_k, nhead_stride_knew, nhead_stride_v, nhead_stride_vnew;
    index_t batch_stride_q, batch_stride_k, batch_stride_knew, batch_stride_v, batch_stride_vnew;
};
struct fmha_fwd_appendkv_traits {
    int hdim_q, hdim_v;
    std::string data_type;
    bool is_v_rowmajor;
    rope_enum rope_type;
};
struct fmha_batch_prefill_args {
    const void *q_ptr, *k_ptr, *v_ptr, *bias_ptr, *q_descale_ptr, *k_descale_ptr, *v_descale_ptr;
    void *rand_val_ptr, *lse_ptr, *o_ptr;
    const void *seqstart_q_ptr, *sink_ptr;
    index_t seqlen_q, seqlen_k, batch, max_seqlen_q, hdim_q, hdim_v, nhead_q, nhead_k;
    std::int32_t num_total_pages;
    index_t page_block_size;
    kv_memory_layout_enum kv_memory_layout;
    kv_lookup_table_enum kv_lookup_table;
    void *kv_indptr, *kv_page_indices, *kv_last_page_lens, *seqlen_k_ptr;
    index_t batch_stride_block_table;
    float scale_s, scale_p, scale_o, logits_soft_cap;
    index_t stride_q, stride_k, stride_v, stride_bias, stride_randval, stride_o;
    index_t nhead_stride_q, nhead_stride_k, nhead_stride_v, nhead_stride_bias, nhead_stride_randval;
    index_t nhead_stride_lse, nhead_stride_o;
    index_t batch_stride_q, batch_stride_k, batch_stride_v, batch_stride_bias, batch_stride_randval;
    index_t batch_stride_lse, batch_stride_o;
    index_t window_size_left, window_size_right, sink_size, mask_type;
    float p_drop;
    bool s_randval;
    seed_and_offset drop_seed_offset;
    index_t nblock_stride_kv_block_descale = 0;
    index_t nhead_stride_kv_block_descale = 0;
};
struct fmha_batch_prefill_traits : fmha_fwd_traits {
    kv_memory_layout_enum kv_memory_layout = kv_memory_layout_enum::VECTORIZED_LAYOUT;
    kv_lookup_table_enum kv_lookup_table = kv_lookup_table_enum::SGLANG_PAGE_TABLE_1D;
    int page_size = 1;
};

float fmha_fwd(fmha_fwd_traits, fmha_fwd_args, const ck_tile::stream_config&);
