#pragma once

#include "dispatcher/upstream/ck/members.hpp"
#include "dispatcher/upstream/ck/shared_types.hpp"

/// Structures of forward attention and of the families over a cache (fmha_fwd.hpp of a checkout).

#if FMHA_CK_CHECKOUT
#ifdef FMHA_CK_BACKWARD_OF_CHECKOUT
#error                                                                                                       \
    "fmha_fwd.hpp and fmha_bwd.hpp of a checkout cannot be in one source, since both define FmhaMasks: include forward.hpp and backward.hpp of the adapter in two sources"
#endif
#define FMHA_CK_FORWARD_OF_CHECKOUT
#include <fmha_fwd.hpp>
#endif

namespace fmha::ck {

#if FMHA_CK_CHECKOUT
using ::quant_scale_enum;
using ::rope_enum;
using kv_memory_layout_enum = ck_tile::BlockAttentionKVCacheMemoryLayoutEnum;
using kv_lookup_table_enum = ck_tile::BlockAttentionKVCacheLookupTableEnum;
using ::fmha_batch_prefill_args;
using ::fmha_batch_prefill_traits;
using ::fmha_fwd_appendkv_args;
using ::fmha_fwd_appendkv_traits;
using ::fmha_fwd_args;
using ::fmha_fwd_pagedkv_args;
using ::fmha_fwd_pagedkv_traits;
using ::fmha_fwd_splitkv_args;
using ::fmha_fwd_splitkv_traits;
using ::fmha_fwd_traits;
#else
enum class quant_scale_enum {
    no_scale = 0,
    pertensor = 1,
    blockscale = 2,
    kv_blockscale = 3,
    mx = 4,
    per_token_head = 5
};
enum class rope_enum { none = 0, interleaved = 1, half_rotated = 2 };
enum class kv_memory_layout_enum { VECTORIZED_LAYOUT = 0, LINEAR_LAYOUT = 1 };
enum class kv_lookup_table_enum { VLLM_BLOCK_TABLE_2D = 0, SGLANG_PAGE_TABLE_1D = 1 };
struct fmha_fwd_args {
    FMHA_CK_FWD_ARGS(FMHA_CK_DECLARE)
};
struct fmha_fwd_traits {
    FMHA_CK_FWD_TRAITS(FMHA_CK_DECLARE)
};
struct fmha_fwd_pagedkv_args {
    FMHA_CK_FWD_PAGEDKV_ARGS(FMHA_CK_DECLARE)
};
struct fmha_fwd_pagedkv_traits {
    FMHA_CK_FWD_PAGEDKV_TRAITS(FMHA_CK_DECLARE)
};
struct fmha_fwd_splitkv_args {
    FMHA_CK_FWD_SPLITKV_ARGS(FMHA_CK_DECLARE)
};
struct fmha_fwd_splitkv_traits {
    FMHA_CK_FWD_SPLITKV_TRAITS(FMHA_CK_DECLARE)
};
struct fmha_fwd_appendkv_args {
    FMHA_CK_FWD_APPENDKV_ARGS(FMHA_CK_DECLARE)
};
struct fmha_fwd_appendkv_traits {
    FMHA_CK_FWD_APPENDKV_TRAITS(FMHA_CK_DECLARE)
};
struct fmha_batch_prefill_args {
    FMHA_CK_BATCH_PREFILL_ARGS(FMHA_CK_DECLARE)
};
struct fmha_batch_prefill_traits : fmha_fwd_traits {
    FMHA_CK_BATCH_PREFILL_TRAITS(FMHA_CK_DECLARE)
};
#endif

FMHA_CK_CHECK(fmha_fwd_args, FMHA_CK_FWD_ARGS, 0)
FMHA_CK_CHECK(fmha_fwd_traits, FMHA_CK_FWD_TRAITS, 0)
FMHA_CK_CHECK(fmha_fwd_pagedkv_args, FMHA_CK_FWD_PAGEDKV_ARGS, 0)
FMHA_CK_CHECK(fmha_fwd_pagedkv_traits, FMHA_CK_FWD_PAGEDKV_TRAITS, 0)
FMHA_CK_CHECK(fmha_fwd_splitkv_args, FMHA_CK_FWD_SPLITKV_ARGS, 0)
FMHA_CK_CHECK(fmha_fwd_splitkv_traits, FMHA_CK_FWD_SPLITKV_TRAITS, 0)
FMHA_CK_CHECK(fmha_fwd_appendkv_args, FMHA_CK_FWD_APPENDKV_ARGS, 0)
FMHA_CK_CHECK(fmha_fwd_appendkv_traits, FMHA_CK_FWD_APPENDKV_TRAITS, 0)
FMHA_CK_CHECK(fmha_batch_prefill_args, FMHA_CK_BATCH_PREFILL_ARGS, 0)
FMHA_CK_CHECK(fmha_batch_prefill_traits, FMHA_CK_BATCH_PREFILL_TRAITS, 1)

static_assert(int(quant_scale_enum::no_scale) == 0 && int(quant_scale_enum::pertensor) == 1 &&
                  int(quant_scale_enum::blockscale) == 2 && int(quant_scale_enum::kv_blockscale) == 3 &&
                  int(quant_scale_enum::mx) == 4 && int(quant_scale_enum::per_token_head) == 5,
              "this checkout numbers its quantisation scales otherwise than section 15");
static_assert(int(rope_enum::none) == 0 && int(rope_enum::interleaved) == 1 &&
                  int(rope_enum::half_rotated) == 2,
              "this checkout numbers its rotary embeddings otherwise than none, interleaved, half_rotated");
static_assert(int(kv_memory_layout_enum::VECTORIZED_LAYOUT) == 0 &&
                  int(kv_memory_layout_enum::LINEAR_LAYOUT) == 1 &&
                  int(kv_lookup_table_enum::VLLM_BLOCK_TABLE_2D) == 0 &&
                  int(kv_lookup_table_enum::SGLANG_PAGE_TABLE_1D) == 1,
              "this checkout numbers its cache layouts or tables otherwise than B-2");

} // namespace fmha::ck
