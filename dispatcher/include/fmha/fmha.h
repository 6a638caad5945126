/* C interface of the FMHA dispatcher: the functions. Their structures are in types.h.
 *
 * Every function returns a status; the sentence that explains it is fmha_last_error(context). A context is used by
 * one thread at a time; several contexts are independent of each other. The name of a function says which memory a pointer
 * belongs to: host entry points take addresses of this process, device entry points addresses of the device. */
#ifndef FMHA_FMHA_H
#define FMHA_FMHA_H

#include <fmha/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fmha_context fmha_context;

/* Version of this interface that the library implements. */
FMHA_API uint32_t fmha_abi_version(void);

/* Creates a context for an architecture. With kernels_dir it opens the device, which becomes the calling thread's
 * current one; code objects are loaded when a kernel is first launched. Unless memory is short, *context is set also
 * when the call fails, so that fmha_last_error can tell why; destroy it in any case. */
FMHA_API fmha_status fmha_create(const fmha_context_options* options, fmha_context** context);
/* Does nothing within the heuristic of this context: the call that asks it still needs the context. */
FMHA_API void fmha_destroy(fmha_context* context);

/* Number of kernels that the context can choose from; 0 for NULL. */
FMHA_API int64_t fmha_kernel_count(const fmha_context* context);

/* Sentence of the last failed call on this context, empty after a successful one. Valid until the next call. */
FMHA_API const char* fmha_last_error(const fmha_context* context);
/* Id of the rule that the last call broke ("N-3"), empty when there is none. */
FMHA_API const char* fmha_last_rule(const fmha_context* context);

/* From now on the context chooses only among those of its kernels for which a Python expression over a kernel `c` is true,
 * as in "c.hdim_q == 128 and not c.dropout" (kernels/catalog/query; `fmha enumerate --show-columns` lists the columns).
 * When none is left, the answer is FMHA_NO_KERNEL and the context is as before. */
FMHA_API fmha_status fmha_keep_kernels(fmha_context* context, const char* where);

/* The kernels of the context as JSON (dispatcher/registry/export.schema.json). Copies at most `capacity` bytes, a NUL
 * among them, and sets *length to the bytes of the whole text without NUL; capacity 0 only asks for the length. */
FMHA_API fmha_status fmha_export_kernels(fmha_context* context, char* text, uint64_t capacity,
                                         uint64_t* length);

/* Kernels that a caller prefers for a call, in order: names as fmha_run_info and fmha_export_kernels have them, or globs
 * ("fwd_*_h128x128_*"), with a newline between them. The first that takes the call's problem computes it. Where the text is
 * NULL or "", or none of its kernels takes the problem, the library chooses as it does without a heuristic. `args` are
 * those of the call; the text has to stay until that call has returned. A heuristic may call functions of the context that asks it,
 * but not destroy it; they choose as they do without a heuristic, so it can ask what would run if it had no preference. */
typedef const char* (*fmha_heuristic)(const void* args, void* user);

/* From now on the heuristic is asked before the library chooses, for each stage of every call; NULL takes it away. A name
 * that no kernel of the context has makes the call fail with FMHA_BAD_ARGUMENT. */
FMHA_API fmha_status fmha_set_heuristic(fmha_context* context, fmha_heuristic heuristic, void* user);

/* The valid kernel configuration that is nearest to `config`, and why. `config` is JSON with the fields of KernelConfig
 * (dispatcher/types/kernel_config.hpp); absent ones keep their defaults, an absent "arch" is the context's, and an "algorithm" of
 * which nothing is stated is that of a kernel of the working list. The answer is
 * JSON: "valid" says whether nothing had to change, "config" and "identifier" are the result, "broken" lists the rules that
 * `config` breaks, "changes" the fields that changed with old value, new value and reason. Copied as
 * fmha_export_kernels copies. */
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
 * are only known to the device; exact may be NULL. For a packed batch of backward the bound counts on no sequence that is longer
 * than max_seqlen_q and max_seqlen_k, padding behind it included; where some are, state host_seqstart_q and host_seqstart_k, with
 * which the size is exact and smaller. */
FMHA_API fmha_status fmha_workspace_size(fmha_context* context, const void* args, int64_t* bytes,
                                         int32_t* exact);

/* Makes `workspace`, device memory aligned to 16 bytes, ready for the kernels, in `stream`. Does nothing when the call needs
 * none. Backward needs it before every run: fmha_run_device answers FMHA_BAD_ARGUMENT for a workspace that this context has not
 * prepared since its last run, or has prepared for another call. For a packed batch it fetches seqstart_q and seqstart_k, and waits
 * for the stream to do so; it does neither where host_seqstart_q and host_seqstart_k are stated. FMHA_BAD_ARGUMENT also stands for memory
 * that is too small, by args->workspace_bytes or by the allocation it lies in, and for memory that is none of the device's.
 *
 * Backward is fastest on Hopper where its partial sums of dQ begin at a multiple of 128 bytes. A header stands before them, of 16
 * bytes, or of al(4·batch) + al(8·(batch + 1)) for a packed batch with deterministic = 1, where al rounds up to 16. So the best
 * place of the workspace is that many bytes before a multiple of 128, and memory of 128 bytes more than its size has such a
 * place. */
FMHA_API fmha_status fmha_prepare_workspace(fmha_context* context, const void* args, void* workspace,
                                            void* stream);

/* Runs on the host target; every pointer is host memory. A workspace is not needed: the call has its own. info may be NULL.
 * Returns when all outputs are written. */
FMHA_API fmha_status fmha_run_host(fmha_context* context, const void* args, fmha_run_info* info);

/* Runs on the context's device; every tensor and array pointer is memory of that device. Returns when the launches are in
 * `stream` (a handle of the HIP or CUDA runtime, NULL = its default stream); a fault of a kernel shows when the caller
 * synchronises. A context without kernels_dir answers FMHA_UNSUPPORTED. info may be NULL. Two calls wait for the stream,
 * because they fetch lengths: one with a tensor that is NULL, to see whether it has elements, and a packed batch of
 * mxfp4, to see that every entry of V begins at an even key. */
FMHA_API fmha_status fmha_run_device(fmha_context* context, const void* args, void* stream,
                                     fmha_run_info* info);

/* Launches as fmha_run_device does, `warm_up` times and then `repeats` times between two events of `stream`, and sets
 * *milliseconds to the mean of the latter. The workspace of backward is prepared before each launch, within that time. Returns
 * when they are done. */
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

/* The library's own layout of a structure of this interface: fills up to `capacity` members in order of offset, sets
 * *struct_size, and returns the number of members, 0 for an unknown name. For bindings that mirror the structures. */
FMHA_API uint64_t fmha_layout(const char* structure, fmha_field_layout* fields, uint64_t capacity,
                              uint64_t* struct_size);

#ifdef __cplusplus
}
#endif

#endif
