#pragma once
// Stands in for a checkout: the structures in the global namespace, with one FAULT_… at a time.
#include "bias.hpp"
#include "dispatcher/upstream/ck/members.hpp"
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

#define PLAIN(type, name) type name;
struct FmhaMasks {};
struct fmha_fwd_args {
    FMHA_CK_FWD_ARGS(PLAIN)
#ifdef FAULT_ADDED
    const void* p_scale_ptr;
#endif
};
#ifdef FAULT_DROPPED
#define has_sink has_a_sink
#endif
#ifdef FAULT_TYPE
struct fmha_fwd_traits {
    long hdim_q;
    int hdim_v;
    std::string data_type;
    bool is_group_mode, is_v_rowmajor, has_logits_soft_cap;
    mask_enum mask_type;
    bias_enum bias_type;
    bool has_lse, has_dropout;
    quant_scale_enum qscale_type;
    bool skip_min_seqlen_q, has_sink;
};
#else
struct fmha_fwd_traits {
    FMHA_CK_FWD_TRAITS(PLAIN)
};
#endif
#undef has_sink
struct fmha_fwd_pagedkv_args {
    FMHA_CK_FWD_PAGEDKV_ARGS(PLAIN)
};
struct fmha_fwd_pagedkv_traits {
    FMHA_CK_FWD_PAGEDKV_TRAITS(PLAIN)
};
struct fmha_fwd_splitkv_args {
    FMHA_CK_FWD_SPLITKV_ARGS(PLAIN)
};
struct fmha_fwd_splitkv_traits {
    FMHA_CK_FWD_SPLITKV_TRAITS(PLAIN)
};
struct fmha_fwd_appendkv_args {
    FMHA_CK_FWD_APPENDKV_ARGS(PLAIN)
};
struct fmha_fwd_appendkv_traits {
    FMHA_CK_FWD_APPENDKV_TRAITS(PLAIN)
};
struct fmha_batch_prefill_args {
    FMHA_CK_BATCH_PREFILL_ARGS(PLAIN)
};
struct fmha_batch_prefill_traits : fmha_fwd_traits {
    FMHA_CK_BATCH_PREFILL_TRAITS(PLAIN)
};
#undef PLAIN

float fmha_fwd(fmha_fwd_traits, fmha_fwd_args, const ck_tile::stream_config&);
