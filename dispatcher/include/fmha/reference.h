/* C interface of the reference, libfmha_reference.so: the results of a right kernel, in binary64 from the stored inputs. It takes
 * the argument structures of types.h, shares no code with the kernels and needs neither a context nor libfmha.so.
 *
 * Results are dense arrays of the caller. A row is one query of one head: entries outermost, then heads, then
 * positions, so that in batch mode o is [batch, nhead_q, seqlen_q, hdim_v]. There, positions beyond the length of an entry have
 * their place and are not written; in group mode they have none, and neither have entries that min_seqlen_q skips, so that the
 * arrays are lists of the logical rows. The same holds for keys. Any output may be NULL. Pointers are host memory.
 * Of the tensors of `args` only inputs are read; outputs may be absent. When a call fails, `error` (if not NULL) gets the
 * sentence, cut to error_capacity bytes with the NUL; that of FMHA_BAD_PROBLEM begins with the id of the rule and ": ". The functions
 * keep no state and may be called by several threads. */
#ifndef FMHA_REFERENCE_H
#define FMHA_REFERENCE_H

#include <fmha/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Attention of fwd, fwd_pagedkv, batch_prefill or fwd_splitkv (as a whole) arguments: o [rows, hdim_v] with scale_o, before any
 * rounding, and lse [rows], natural logarithm, -infinity where no key is visible. `arch` decides the 8-bit
 * flavour; FMHA_BAD_ARGUMENT lists the known ones for any other name. */
FMHA_API fmha_status fmha_reference_attention(const char* arch, const void* args, double* o, double* lse,
                                              char* error, uint64_t error_capacity);

/* Gradients in binary64. Keys of dk and dv: entries outermost, then heads, then positions. With reduce_dk_dv = 0 the heads are the
 * query heads, so that in batch mode dk is [batch, nhead_q, seqlen_k, hdim_q], and the gradient of a shared head is the sum over its
 * group, which is the caller's to take. With reduce_dk_dv = 1 they are the KV heads and have these sums: [batch, nhead_k, seqlen_k,
 * hdim_q]. d is what kernels store: (1 - p_drop) times the sum over channels of d_o times o, the plain sum without dropout. */
typedef struct fmha_reference_gradients_out {
    uint32_t size;
    uint32_t version;
    double* dq;     /* [rows, hdim_q] */
    double* d;      /* [rows] */
    double* dbias;  /* [rows, seqlen_k], in group mode [rows, longest key sequence] */
    double* dk;     /* [keys, hdim_q] */
    double* dv;     /* [keys, hdim_v] */
    double* d_sink; /* [nhead_q] */
} fmha_reference_gradients_out;

FMHA_API fmha_status fmha_reference_gradients(const char* arch, const fmha_bwd_args* args,
                                              const fmha_reference_gradients_out* out, char* error,
                                              uint64_t error_capacity);

#ifdef __cplusplus
}
#endif

#endif
