/* C interface of the FMHA dispatcher.
 *
 * Every structure begins with its size and version: set them with the FMHA_INIT macro (or to sizeof and
 * FMHA_ABI_VERSION) and zero the rest; zero is the default of every field unless its comment says otherwise. Every
 * function returns a status; the sentence that explains it is fmha_last_error(context). A context is used by
 * one thread at a time; several contexts are independent of each other.
 *
 * Strides are 64-bit element counts. Which memory a pointer belongs to is part of the function's name: host
 * entry points take addresses of this process, device entry points addresses of the device. */
#ifndef FMHA_FMHA_H
#define FMHA_FMHA_H

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

#define FMHA_ABI_VERSION 4u

/* Zeroes a structure and states its size and version. */
#define FMHA_INIT(Type) ((Type){.size = (uint32_t)sizeof(Type), .version = FMHA_ABI_VERSION})

/* The same for the arguments of an API, as in FMHA_ARGS(fmha_bwd_args, FMHA_BWD). */
#define FMHA_ARGS(Type, Api)                                                                                 \
    ((Type){.size = (uint32_t)sizeof(Type), .version = FMHA_ABI_VERSION, .api = (Api)})

typedef struct fmha_context fmha_context;

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
 * bias and random bytes, blocks for descales). A stride of 0 broadcasts. In group mode the batch stride is 0 and
 * rows are packed. data = NULL means absent; where a tensor must be there, NULL is right exactly where it has no elements
 * because no sequence has a query (or a key). */
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

/* Logical lengths: [batch], or cumulative [batch + 1]; never both on a side. seqstart_*: [batch + 1], group mode. */
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
    float logits_soft_cap;     /* 0 = off */
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
    fmha_tensor q_descale;
    fmha_tensor k_descale;
    fmha_tensor v_descale;
    int64_t block_scale_size_q; /* 0 = 128 */
    int64_t block_scale_size_k;
    const int32_t* block_scale_seqstart_q;
    const int32_t* block_scale_seqstart_k;
} fmha_quant;

/* Where keys and values lie. All NULL and 0: contiguous, entry b in slot b. */
typedef struct fmha_kv_place {
    const int32_t* block_table; /* [batch, block_table_stride]: physical page of a logical page */
    int64_t block_table_stride;
    const int32_t* kv_indptr;         /* [batch + 1] into kv_page_indices */
    const int32_t* kv_page_indices;   /* physical pages of all entries */
    const int32_t* kv_last_page_lens; /* [batch]; may be NULL when page_size is 1 */
    const int32_t* cache_batch_idx;   /* [batch]: cache slot of an entry, contiguous only */
    int64_t page_size;                /* keys a page; 0 = not paged */
    int64_t page_count;               /* pages of the pool */
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
    int64_t num_splits; /* 0 = the plan chooses */
    void* workspace;    /* of fmha_workspace_size bytes, prepared */
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
    float* d_sink;     /* [nhead_q]; NULL = not wanted */
    fmha_lengths lengths;
    fmha_mask_args mask;
    fmha_score score;
    fmha_dropout dropout;
    void* workspace; /* of fmha_workspace_size bytes, prepared; may be NULL when that is 0 */
    int32_t
        reduce_dk_dv; /* 1: dk and dv of a KV head are the sums over its query heads; 0: one of each query head */
    int32_t reserved;
} fmha_bwd_args;

/* What a call decided and measured. */
typedef struct fmha_run_info {
    uint32_t size;
    uint32_t version;
    int64_t workspace_bytes;
    double
        milliseconds; /* of a run on the host; 0 for a plan and for a launch on a device, which is not waited for */
    char kernel[512]; /* name of the kernel, NUL-terminated, cut if longer */
} fmha_run_info;

/* Version of this interface that the library implements. */
FMHA_API uint32_t fmha_abi_version(void);

/* Creates a context for an architecture. With kernels_dir it opens the device, which becomes the calling thread's
 * current one; code objects are loaded when a kernel is first launched. Unless memory is short, *context is set also when the call fails, so that
 * fmha_last_error can tell why; destroy it in any case. */
FMHA_API fmha_status fmha_create(const fmha_context_options* options, fmha_context** context);
FMHA_API void fmha_destroy(fmha_context* context);

/* Number of kernels that the context can choose from; 0 for NULL. */
FMHA_API int64_t fmha_kernel_count(const fmha_context* context);

/* Sentence of the last failed call on this context, empty after a successful one. Valid until the next call. */
FMHA_API const char* fmha_last_error(const fmha_context* context);
/* Id of the rule that the last call broke ("N-3"), empty when there is none. */
FMHA_API const char* fmha_last_rule(const fmha_context* context);

/* From now on the context chooses among those of its kernels for which a Python expression over a kernel `c` is true, as in
 * "c.hdim_q == 128 and not c.dropout" (kernels/catalog/query; `fmha enumerate --show-columns` lists the columns). None left:
 * FMHA_NO_KERNEL, and the context is as before. */
FMHA_API fmha_status fmha_keep_kernels(fmha_context* context, const char* where);

/* The kernels of the context as JSON (dispatcher/registry/export.schema.json). Copies at most `capacity` bytes, a NUL
 * among them, and sets *length to the bytes of the whole text without NUL; capacity 0 only asks for the length. */
FMHA_API fmha_status fmha_export_kernels(fmha_context* context, char* text, uint64_t capacity,
                                         uint64_t* length);

/* Kernels that a caller prefers for a call, in order: names as fmha_run_info and fmha_export_kernels have them, or globs ("fwd_*_h128x128_*"), with a
 * newline between them. The first that takes the call's problem computes it; of NULL, "" and kernels that all do not take it the
 * library's own choice does. `args` are those of the call; the text has to stay until the call for which it was asked has returned. */
typedef const char* (*fmha_heuristic)(const void* args, void* user);

/* From now on the heuristic is asked before the library chooses, for each stage of every call; NULL takes it away. A name that no kernel
 * of the context has makes the call fail with FMHA_BAD_ARGUMENT. */
FMHA_API fmha_status fmha_set_heuristic(fmha_context* context, fmha_heuristic heuristic, void* user);

/* The valid kernel configuration that is nearest to `config`, and why. `config` is JSON with the fields of KernelConfig
 * (dispatcher/types/kernel_config.hpp); absent ones keep their defaults, an absent "arch" is the context's. The answer is JSON: "valid" says that nothing had to
 * change, "config" and "identifier" are the result, "broken" the rules that `config` breaks, "changes" the fields with old and new value and the reason.
 * Copied as fmha_export_kernels copies. */
FMHA_API fmha_status fmha_correct_kernel(fmha_context* context, const char* config, char* text,
                                         uint64_t capacity, uint64_t* length);

/* `args` of the calls below points to the arguments of one of the six APIs, which its `api` names. */

/* Which kernels would run. Looks at pointers only to see whether they are NULL. Works for all six APIs. */
FMHA_API fmha_status fmha_plan(fmha_context* context, const void* args, fmha_run_info* info);

/* Why these kernels would run and which others came close, as text; copied as fmha_export_kernels copies. Works also for a
 * problem that no kernel takes. */
FMHA_API fmha_status fmha_explain(fmha_context* context, const void* args, char* text, uint64_t capacity,
                                  uint64_t* length);

/* Bytes of the one workspace that a call needs, 0 = none. *exact is 0 when the size is an upper bound, because lengths
 * are only known to the device; exact may be NULL. */
FMHA_API fmha_status fmha_workspace_size(fmha_context* context, const void* args, int64_t* bytes,
                                         int32_t* exact);

/* Puts into `workspace`, device memory aligned to 16 bytes, what kernels expect there, in `stream`. Does nothing when the
 * call needs none. Backward needs it before every run. For a packed batch it fetches seqstart_q and seqstart_k, which waits
 * for the stream. Backward of a batch is fastest on Hopper at 112 bytes behind a multiple of 128, because 16 bytes stand
 * before its partial sums of dQ. */
FMHA_API fmha_status fmha_prepare_workspace(fmha_context* context, const void* args, void* workspace,
                                            void* stream);

/* Runs on the host target; every pointer is host memory. A workspace is not needed: the call has its own. info may be NULL.
 * Returns when all outputs are written. */
FMHA_API fmha_status fmha_run_host(fmha_context* context, const void* args, fmha_run_info* info);

/* Runs on the context's device; every tensor and array pointer is memory of that device. Returns when the launches are in
 * `stream` (a handle of the HIP or CUDA runtime, NULL = its default stream); a fault of a kernel shows when the caller
 * synchronises. A context without kernels_dir answers FMHA_UNSUPPORTED. info may be NULL. */
FMHA_API fmha_status fmha_run_device(fmha_context* context, const void* args, void* stream,
                                     fmha_run_info* info);

/* Launches as fmha_run_device does, `warm_up` times and then `repeats` times between two events of `stream`, and sets
 * *milliseconds to the mean of the latter. Each launch of backward has its workspace prepared before, in that time. Returns when they
 * are done. */
FMHA_API fmha_status fmha_time_device(fmha_context* context, const void* args, void* stream, int32_t warm_up,
                                      int32_t repeats, double* milliseconds);

/* Memory of the context's device, for callers that have no runtime of their own. A context without kernels_dir answers
 * FMHA_UNSUPPORTED. fmha_device_release takes NULL; memory must be released before its context. */
FMHA_API fmha_status fmha_device_allocate(fmha_context* context, int64_t bytes, void** memory);
FMHA_API fmha_status fmha_device_release(fmha_context* context, void* memory);
/* Copies in the order of `stream`; done when it has been waited for, and host memory has to stay until then. */
FMHA_API fmha_status fmha_device_upload(fmha_context* context, void* device, const void* host, int64_t bytes,
                                        void* stream);
FMHA_API fmha_status fmha_device_download(fmha_context* context, void* host, const void* device,
                                          int64_t bytes, void* stream);
/* Returns when everything in `stream` is done; a fault of a kernel shows here. */
FMHA_API fmha_status fmha_device_wait(fmha_context* context, void* stream);

/* One member of a structure of this interface. */
typedef struct fmha_field_layout {
    const char* name;
    const char*
        type; /* "int32", "uint32", "int64", "uint64", "float", "double", "pointer", "text", or a structure's name */
    uint64_t offset;
    uint64_t size;
} fmha_field_layout;

/* The library's own layout of a structure of this header: fills up
 * to `capacity` members in order of offset, sets *struct_size, and returns the number of members, 0 for an
 * unknown name. For bindings that mirror the structures. */
FMHA_API uint64_t fmha_layout(const char* structure, fmha_field_layout* fields, uint64_t capacity,
                              uint64_t* struct_size);

#ifdef __cplusplus
}
#endif

#endif
