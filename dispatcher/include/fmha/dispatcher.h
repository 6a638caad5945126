/* The C functions of the library that the dispatcher's Python layer loads (libdispatcher_fmha_lib.so), over our kernels on the host. Their
 * arguments stand in the order that callers have; where a flag asks for data that no argument brings (a bias, dropout, a soft-cap, sink logits,
 * min_seqlen_q, rotary tables, random bytes), the call fails.
 *
 * Every pointer is memory of this process. Tensors are dense: [batch, heads, positions, channels] with perm 1, [batch, positions, heads, channels]
 * with perm 0; in group mode each sequence has the length of the problem. V is [batch, heads, channels, positions] with v_rowmajor 0. LSE is
 * [batch, heads, positions], float, natural logarithm. A scale of 0 is 1 / sqrt(hdim_q). Masks: 0 none, 1 top-left, 2 bottom-right, 3 a
 * window; with 1 and 2, windows of -1 are causal. Heads of K and V that are shared get summed gradients.
 *
 * A call returns 0; -1 before fmha_dispatcher_initialize; -2 when it fails, with a sentence on stderr. *time_ms, which may be NULL, gets the
 * milliseconds of the one launch. The functions share one set of kernels and take turns. */
#ifndef FMHA_DISPATCHER_H
#define FMHA_DISPATCHER_H

#if defined(__GNUC__)
#define FMHA_DISPATCHER_API __attribute__((visibility("default")))
#else
#define FMHA_DISPATCHER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Opens all kernels of an architecture ("gfx950"; NULL is that). 0, also when they are open already; -1 when there are none, and when those of
 * another architecture are open, which stay. */
FMHA_DISPATCHER_API int fmha_dispatcher_initialize(const char* arch);
/* Kernels that are open; 0 before initialize and after cleanup. */
FMHA_DISPATCHER_API int fmha_dispatcher_kernel_count(void);
FMHA_DISPATCHER_API void fmha_dispatcher_cleanup(void);

FMHA_DISPATCHER_API int fmha_dispatcher_run_fwd(const void* q, const void* k, const void* v, void* o,
                                                int batch, int nhead_q, int nhead_k, int seqlen_q,
                                                int seqlen_k, int hdim_q, int hdim_v, float scale,
                                                int mask_type, int bias_type, int has_lse, int has_dropout,
                                                int traits_hdim_q, int traits_hdim_v, int v_rowmajor,
                                                int perm, const char* data_type, int group_mode,
                                                int window_left, int window_right, int has_logits,
                                                int has_sink, int has_skip, float* time_ms);

FMHA_DISPATCHER_API int
fmha_dispatcher_run_bwd(const void* q, const void* k, const void* v, const void* o, const void* lse,
                        const void* d_o, void* dq, void* dk, void* dv, int batch, int nhead_q, int nhead_k,
                        int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale,
                        const char* data_type, int mask_type, int bias_type, int has_dropout, int has_dbias,
                        int deterministic, int group_mode, int store_randval, int tile_n0, float* time_ms);

/* With paged 1 K and V are cut into pages of page_size keys, 128 at least. */
FMHA_DISPATCHER_API int
fmha_dispatcher_run_splitkv(const void* q, const void* k, const void* v, void* o, int batch, int nhead_q,
                            int nhead_k, int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale,
                            int mask_type, int num_splits, int v_rowmajor, const char* data_type, int has_lse,
                            int group_mode, int perm, int has_logits, int bias_type, int has_sink, int paged,
                            int page_size, int window_left, int window_right, float* time_ms);

FMHA_DISPATCHER_API int
fmha_dispatcher_run_pagedkv(const void* q, const void* k, const void* v, void* o, int batch, int nhead_q,
                            int nhead_k, int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale,
                            int mask_type, int page_size, int v_rowmajor, const char* data_type, int has_lse,
                            int has_logits, int has_sink, int has_skip, int bias_type, float* time_ms);

/* Appends to an empty cache that goes with the call, which times it. */
FMHA_DISPATCHER_API int fmha_dispatcher_run_appendkv(const void* q, const void* k_new, const void* v_new,
                                                     int batch, int nhead_q, int nhead_k, int seqlen_q,
                                                     int seqlen_knew, int hdim_q, int hdim_v, int v_rowmajor,
                                                     int rope, int paged, int page_size,
                                                     const char* data_type, float* time_ms);

/* kv_layout: 0 vectorized, 1 linear; kv_lookup: 0 vLLM, 1 SGLang. K and V are cut into pages of page_size keys. */
FMHA_DISPATCHER_API int fmha_dispatcher_run_batch_prefill(
    const void* q, const void* k, const void* v, void* o, int batch, int nhead_q, int nhead_k, int seqlen_q,
    int seqlen_k, int hdim_q, int hdim_v, float scale, int mask_type, int bias_type, int page_size,
    int kv_layout, int kv_lookup, int v_rowmajor, const char* data_type, int has_lse, int has_dropout,
    int has_logits, int has_sink, int has_skip, float* time_ms);

#ifdef __cplusplus
}
#endif

#endif
