/* Enumerations and structures of the C interface, for libfmha.so (fmha.h) and libfmha_reference.so (reference.h).
 *
 * Every structure begins with its size and version: set them with the FMHA_INIT macro (or to sizeof and
 * FMHA_ABI_VERSION) and zero the rest; zero is the default of every field unless its comment says otherwise. Strides are
 * 64-bit element counts. */
#ifndef FMHA_TYPES_H
#define FMHA_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FMHA_API __attribute__((visibility("default")))
#else
#define FMHA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define FMHA_ABI_VERSION 5u

/* Zeroes a structure and states its size and version. */
#define FMHA_INIT(Type) ((Type){.size = (uint32_t)sizeof(Type), .version = FMHA_ABI_VERSION})

/* The same for the arguments of an API, as in FMHA_ARGS(fmha_bwd_args, FMHA_BWD). */
#define FMHA_ARGS(Type, Api)                                                                                 \
    ((Type){.size = (uint32_t)sizeof(Type), .version = FMHA_ABI_VERSION, .api = (Api)})

typedef enum fmha_status {
    FMHA_OK = 0,
    FMHA_BAD_ARGUMENT = 1, /* null pointer, wrong size or version, unknown enumerator */
    FMHA_BAD_PROBLEM = 2,  /* the problem breaks a rule; fmha_last_rule names it */
    FMHA_NO_KERNEL = 3,    /* valid problem without a kernel; the error explains the nearest ones */
    FMHA_UNSUPPORTED = 4,  /* the target cannot execute this */
    FMHA_NO_MEMORY = 5,
    FMHA_INTERNAL = 6,
    FMHA_DEVICE_ERROR = 7 /* no device, no plugin for one, or a call of its runtime that failed */
} fmha_status;

typedef enum fmha_api {
    FMHA_FWD = 0,
    FMHA_FWD_PAGEDKV = 1,
    FMHA_FWD_SPLITKV = 2,
    FMHA_FWD_APPENDKV = 3,
    FMHA_BATCH_PREFILL = 4,
    FMHA_BWD = 5
} fmha_api;

typedef enum fmha_data_type {
    FMHA_FP32 = 0,
    FMHA_FP16 = 1,
    FMHA_BF16 = 2,
    FMHA_FP8 = 3,
    FMHA_BF8 = 4,
    FMHA_FP8BF16 = 5,
    FMHA_FP8FP32 = 6,
    FMHA_MXFP8 = 7,
    FMHA_MXFP4 = 8
} fmha_data_type;

typedef enum fmha_mode { FMHA_BATCH = 0, FMHA_GROUP = 1 } fmha_mode;
typedef enum fmha_v_layout { FMHA_V_ROW = 0, FMHA_V_COLUMN = 1 } fmha_v_layout;

typedef enum fmha_mask {
    FMHA_NO_MASK = 0,
    FMHA_TOP_LEFT = 1,
    FMHA_BOTTOM_RIGHT = 2,
    FMHA_WINDOW_GENERIC = 3
} fmha_mask;

typedef enum fmha_bias { FMHA_NO_BIAS = 0, FMHA_ELEMENTWISE = 1, FMHA_ALIBI = 2 } fmha_bias;

typedef enum fmha_qscale {
    FMHA_NO_SCALE = 0,
    FMHA_PERTENSOR = 1,
    FMHA_BLOCKSCALE = 2,
    FMHA_KV_BLOCKSCALE = 3,
    FMHA_MX = 4,
    FMHA_PER_TOKEN_HEAD = 5
} fmha_qscale;

typedef enum fmha_rope {
    FMHA_ROPE_NONE = 0,
    FMHA_ROPE_INTERLEAVED = 1,
    FMHA_ROPE_HALF_ROTATED = 2
} fmha_rope;
typedef enum fmha_kv_layout { FMHA_KV_VECTORIZED = 0, FMHA_KV_LINEAR = 1 } fmha_kv_layout;
typedef enum fmha_kv_lookup { FMHA_KV_VLLM_2D = 0, FMHA_KV_SGLANG_1D = 1 } fmha_kv_lookup;

/* A strided tensor, indexed (batch, head, row, column). Rows are sequence positions, columns channels (keys for
 * bias and random bytes, blocks for descales). A stride of 0 broadcasts an input. Two elements of an output in one place
 * are FMHA_BAD_PROBLEM when the call runs. In group mode rows are packed, and a batch stride is not looked at unless it
 * leads from page to page. data = NULL means absent. A tensor that the call needs may be NULL only where it has no
 * elements, because no sequence has a query (or a key). Elements lie at multiples of their size (FMHA_BAD_ARGUMENT), and strides lead
 * nowhere beyond 2^56 bytes (FMHA_BAD_PROBLEM).
 *
 * An output that shares memory with an input or with another output is FMHA_BAD_PROBLEM when the call runs; append-KV changes
 * its cache and queries in place, and they are outputs. Strides may interleave tensors in one allocation, as those of packed
 * projections do. An overlap is looked for as far as extents are known: of a packed batch in device memory the first row counts, of
 * a cache page_count pages or slots. Descales, ALiBi slopes, integer arrays and the workspace are not looked at.
 *
 * Inputs must not be NaN (L-5). No call looks for one, and what depends on it is not defined: it need not be NaN. A maximum
 * passes over NaN, so that a row whose query has one can be 0, as a row that sees no key. */
typedef struct fmha_tensor {
    void* data;
    int64_t batch_stride;
    int64_t head_stride;
    int64_t row_stride;
    int64_t col_stride;
} fmha_tensor;

typedef struct fmha_context_options {
    uint32_t size;
    uint32_t version;
    const char*
        arch; /* "gfx950", "gfx942", "sm_90", ...; required without kernels_dir, else NULL = the device's */
    /* Folder that `fmha build` filled. NULL: the context chooses from the whole catalogue of `arch` and runs on the
     * host only. Otherwise it chooses from the kernels that the folder has for `arch`, and they run on `device`. */
    const char* kernels_dir;
    int64_t device; /* number of the device, in the order of the HIP runtime; only with kernels_dir */
} fmha_context_options;

/* Extents. Element types follow from data_type and the context's architecture. */
typedef struct fmha_shape {
    int32_t data_type; /* fmha_data_type */
    int32_t mode;      /* fmha_mode */
    int32_t v_layout;  /* fmha_v_layout */
    int32_t reserved;  /* 0 */
    int64_t batch;
    int64_t nhead_q;
    int64_t nhead_k;
    int64_t seqlen_q; /* batch mode: allocated lengths; ignored as lengths in group mode */
    int64_t seqlen_k;
    int64_t max_seqlen_q; /* required in group mode */
    int64_t max_seqlen_k;
    int64_t min_seqlen_q;
    int64_t hdim_q;
    int64_t hdim_v;
} fmha_shape;

/* Logical lengths: [batch], or cumulative [batch + 1]; never both on a side. seqstart_*: [batch + 1], group mode; the first
 * one is 0, but for keys of a cache with is_gappy. */
typedef struct fmha_lengths {
    const int32_t* seqstart_q;
    const int32_t* seqstart_k;
    const int32_t* seqlen_q;
    const int32_t* seqlen_k;
    const int32_t* cu_seqlen_q;
    const int32_t* cu_seqlen_k;
} fmha_lengths;

typedef struct fmha_mask_args {
    int32_t type;        /* fmha_mask */
    int32_t reserved;    /* 0 */
    int64_t window_left; /* negative = unbounded; with FMHA_WINDOW_GENERIC literal y - 1 and x - 1 */
    int64_t window_right;
    int64_t sink_size;
} fmha_mask_args;

typedef struct fmha_score {
    int32_t bias_type;         /* fmha_bias */
    float scale_s;             /* 0 = 1 / sqrt(hdim_q) */
    float scale_o;             /* 0 = 1 */
    float logits_soft_cap;     /* 0 = off, at most 2.3586e38 */
    const float* alibi_slopes; /* [nhead_q], or [batch, nhead_q] with alibi_stride = nhead_q */
    int64_t alibi_stride;
    const float* sink_logit; /* [nhead_q] */
} fmha_score;

typedef struct fmha_dropout {
    uint64_t seed;
    uint64_t offset;
    float p_drop;     /* 0 = off */
    int32_t reserved; /* 0 */
} fmha_dropout;

typedef struct fmha_quant {
    int32_t qscale;   /* fmha_qscale */
    int32_t reserved; /* 0 */
    /* fp32, for mx e8m0. pertensor: one number. blockscale: rows are blocks of positions. mx: rows of Q and K are positions, their channels
     * blocks of 32 channels; rows of V are blocks of 32 keys, their channels those of V. kv_blockscale: one number for Q, (page, head) for K and
     * V. per_token_head: rows of Q are positions, those of K slots of (page, head); V has a number for every head. */
    fmha_tensor q_descale;
    fmha_tensor k_descale;
    fmha_tensor v_descale;
    int64_t block_scale_size_q; /* 0 = 128 */
    int64_t block_scale_size_k;
    /* [batch + 1], group mode: where the blocks of an entry begin, behind those of the entries before. mx has those of 32 keys alone. */
    const int32_t* block_scale_seqstart_q;
    const int32_t* block_scale_seqstart_k;
} fmha_quant;

/* Where keys and values lie. All NULL and 0: contiguous, entry b in slot b. Keys of an entry in a list of pages (kv_indptr) follow
 * from the list and kv_last_page_lens; their lengths in fmha_lengths are not looked at. */
typedef struct fmha_kv_place {
    /* [batch, block_table_stride]: physical page of a logical page; may be NULL where no sequence has a key */
    const int32_t* block_table;
    int64_t block_table_stride;
    const int32_t* kv_indptr;         /* [batch + 1] into kv_page_indices */
    const int32_t* kv_page_indices;   /* physical pages of all entries */
    const int32_t* kv_last_page_lens; /* [batch]; may be NULL when page_size is 1 */
    const int32_t* cache_batch_idx;   /* [batch]: cache slot of an entry, contiguous only */
    int64_t page_size;                /* keys a page; 0 = not paged */
    int64_t page_count;               /* pages of the pool; not paged: slots of the cache, 0 = not known */
    int32_t is_gappy;                 /* 0 or 1: entries begin inside their first page */
    int32_t kv_layout;                /* fmha_kv_layout; batch prefill only */
    int32_t kv_lookup;                /* fmha_kv_lookup; batch prefill only */
    int32_t reserved;                 /* 0 */
} fmha_kv_place;

/* Rotary embedding; tables (0, 0, position, pair) in the type of K. */
typedef struct fmha_rope_args {
    int32_t type;     /* fmha_rope */
    int32_t reserved; /* 0 */
    int64_t rotary_dim;
    fmha_tensor cos;
    fmha_tensor sin;
} fmha_rope_args;

/* Arguments of an API begin with their size, version and API. */
typedef struct fmha_fwd_args {
    uint32_t size;
    uint32_t version;
    int32_t api;      /* FMHA_FWD */
    int32_t reserved; /* 0 */
    fmha_shape shape;
    fmha_tensor q;
    fmha_tensor k;
    fmha_tensor v;
    fmha_tensor o;
    fmha_tensor lse;     /* fp32 output, columns unused; NULL = not wanted */
    fmha_tensor bias;    /* with FMHA_ELEMENTWISE */
    fmha_tensor randval; /* uint8 output; NULL = not wanted */
    fmha_lengths lengths;
    fmha_mask_args mask;
    fmha_score score;
    fmha_dropout dropout;
    fmha_quant quant;
} fmha_fwd_args;

typedef struct fmha_splitkv_args {
    uint32_t size;
    uint32_t version;
    int32_t api;      /* FMHA_FWD_SPLITKV */
    int32_t reserved; /* 0 */
    fmha_shape shape;
    fmha_tensor q;
    fmha_tensor k;
    fmha_tensor v;
    fmha_tensor o;
    fmha_tensor lse;
    fmha_tensor bias;
    fmha_lengths lengths;
    fmha_mask_args mask;
    fmha_score score;
    fmha_quant quant;
    fmha_kv_place place;
    int64_t num_splits;      /* 0 = the plan chooses */
    void* workspace;         /* of fmha_workspace_size bytes, prepared */
    int64_t workspace_bytes; /* that `workspace` has; 0 = not stated */
} fmha_splitkv_args;

typedef struct fmha_pagedkv_args {
    uint32_t size;
    uint32_t version;
    int32_t api;      /* FMHA_FWD_PAGEDKV */
    int32_t reserved; /* 0 */
    fmha_shape shape;
    fmha_tensor q;
    fmha_tensor k;
    fmha_tensor v;
    fmha_tensor o;
    fmha_tensor lse;
    fmha_tensor bias;
    fmha_lengths lengths;
    fmha_mask_args mask;
    fmha_score score;
    fmha_quant quant;
    fmha_kv_place place;
} fmha_pagedkv_args;

typedef struct fmha_appendkv_args {
    uint32_t size;
    uint32_t version;
    int32_t api;      /* FMHA_FWD_APPENDKV */
    int32_t has_mask; /* 0 or 1: decides the positions of rotated query rows */
    fmha_shape shape;
    int64_t seqlen_knew;
    fmha_tensor q; /* in and out; NULL = no queries to rotate */
    fmha_tensor k; /* the cache, in and out: shape.seqlen_k keys a slot unless it is paged */
    fmha_tensor v;
    fmha_tensor k_new;
    fmha_tensor v_new;
    fmha_lengths lengths; /* seqlen_k: tokens already in the cache */
    fmha_rope_args rope;
    fmha_kv_place place;
} fmha_appendkv_args;

typedef struct fmha_batch_prefill_args {
    uint32_t size;
    uint32_t version;
    int32_t api;      /* FMHA_BATCH_PREFILL */
    int32_t reserved; /* 0 */
    fmha_shape shape;
    fmha_tensor q;
    fmha_tensor k;
    fmha_tensor v;
    fmha_tensor o;
    fmha_tensor lse;
    fmha_tensor bias;
    fmha_tensor randval;
    fmha_lengths lengths;
    fmha_mask_args mask;
    fmha_score score;
    fmha_dropout dropout;
    fmha_quant quant;
    fmha_kv_place place;
} fmha_batch_prefill_args;

typedef struct fmha_bwd_args {
    uint32_t size;
    uint32_t version;
    int32_t api;           /* FMHA_BWD */
    int32_t deterministic; /* 0 or 1 */
    fmha_shape shape;
    fmha_tensor q;
    fmha_tensor k;
    fmha_tensor v;
    fmha_tensor o;
    fmha_tensor lse;
    fmha_tensor bias;
    fmha_tensor d_o;
    fmha_tensor randval; /* forward's random bytes; NULL = replayed from seed and offset */
    fmha_tensor d;       /* fp32 memory, one number a query row */
    fmha_tensor dq;
    fmha_tensor dk; /* dk and dv: nhead_q heads, or nhead_k with reduce_dk_dv */
    fmha_tensor dv;
    fmha_tensor dbias; /* NULL = not wanted */
    float* d_sink;     /* [nhead_q]; NULL = not wanted, as it must be without sink_logit */
    fmha_lengths lengths;
    fmha_mask_args mask;
    fmha_score score;
    fmha_dropout dropout;
    void* workspace; /* of fmha_workspace_size bytes, prepared; may be NULL when that is 0 */
    int32_t
        reduce_dk_dv; /* 1: dk and dv of a KV head are the sums over its query heads; 0: one of each query head */
    int32_t reserved;               /* 0 */
    int64_t workspace_bytes;        /* that `workspace` has; 0 = not stated */
    const int32_t* host_seqstart_q; /* group mode: lengths.seqstart_q once more, in memory of the host */
    const int32_t* host_seqstart_k; /* and in lengths.seqstart_k; both NULL = not known there */
} fmha_bwd_args;

/* The decisions and measurements of a call. */
typedef struct fmha_run_info {
    uint32_t size;
    uint32_t version;
    int64_t workspace_bytes;
    double
        milliseconds; /* of a run on the host; 0 for a plan and for a launch on a device, which is not waited for */
    char kernel[512]; /* name of the kernel, NUL-terminated, cut if longer */
} fmha_run_info;

#ifdef __cplusplus
}
#endif

#endif
