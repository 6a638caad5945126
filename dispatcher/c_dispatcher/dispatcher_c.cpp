#include "dispatcher/c_dispatcher/arrays.hpp"

#include <fmha/dispatcher.h>
#include <fmha/fmha.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

namespace {

using fmha::c_dispatcher::Bytes;
using fmha::c_dispatcher::Dense;
using fmha::c_dispatcher::Kind;
using fmha::c_dispatcher::kind_of;
using fmha::c_dispatcher::packed;
using fmha::c_dispatcher::Placed;
using fmha::c_dispatcher::Pool;
using fmha::c_dispatcher::Sizes;

/// The interface has no handle, so that one set of kernels serves the process.
struct Opened {
    std::mutex lock;
    fmha_context* context = nullptr;
};

Opened& opened() {
    static Opened one;
    return one;
}

void refuse(bool asked, const char* flag, const char* lacking) {
    if (asked)
        throw std::invalid_argument(std::string(flag) + " is set, and this call has no argument for " +
                                    lacking);
}

template <class Args>
Args fresh(fmha_api api, const Kind& kind, const Sizes& sizes, bool group) {
    if (std::min({sizes.batch, sizes.nhead_q, sizes.nhead_k, sizes.seqlen_q, sizes.seqlen_k, sizes.hdim_q,
                  sizes.hdim_v}) < 1)
        throw std::invalid_argument("sizes have to be 1 or more");
    Args args{};
    args.size = sizeof args;
    args.version = FMHA_ABI_VERSION;
    args.api = api;
    fmha_shape& shape = args.shape;
    shape.data_type = kind.type;
    shape.mode = group ? FMHA_GROUP : FMHA_BATCH;
    shape.batch = sizes.batch;
    shape.nhead_q = sizes.nhead_q;
    shape.nhead_k = sizes.nhead_k;
    shape.seqlen_q = shape.max_seqlen_q = sizes.seqlen_q;
    shape.seqlen_k = shape.max_seqlen_k = sizes.seqlen_k;
    shape.hdim_q = sizes.hdim_q;
    shape.hdim_v = sizes.hdim_v;
    return args;
}

void set_mask(fmha_mask_args& mask, int type, int left, int right) {
    mask.type = type;
    mask.window_left = left;
    const bool causal = type == FMHA_TOP_LEFT || type == FMHA_BOTTOM_RIGHT;
    mask.window_right = causal && left == -1 && right == -1 ? 0 : right;
}

double launch(fmha_context* context, const void* args) {
    fmha_run_info info{};
    info.size = sizeof info;
    info.version = FMHA_ABI_VERSION;
    if (fmha_run_host(context, args, &info) != FMHA_OK) throw std::runtime_error(fmha_last_error(context));
    return info.milliseconds;
}

template <class Body>
int guarded(float* time_ms, const Body& body) {
    Opened& one = opened();
    const std::lock_guard turn(one.lock);
    if (one.context == nullptr) return -1;
    try {
        const double milliseconds = body(one.context);
        if (time_ms != nullptr) *time_ms = static_cast<float>(milliseconds);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "fmha: %s\n", error.what());
        return -2;
    }
}

constexpr std::int64_t least_page = 128; ///< that kernels of split-KV and paged-KV take

} // namespace

int fmha_dispatcher_initialize(const char* arch) {
    Opened& one = opened();
    const std::lock_guard turn(one.lock);
    if (one.context != nullptr) return 0;
    fmha_context_options options{};
    options.size = sizeof options;
    options.version = FMHA_ABI_VERSION;
    options.arch = arch != nullptr ? arch : "gfx950";
    if (fmha_create(&options, &one.context) == FMHA_OK && fmha_kernel_count(one.context) > 0) return 0;
    std::fprintf(stderr, "fmha: %s\n", fmha_last_error(one.context));
    fmha_destroy(one.context);
    one.context = nullptr;
    return -1;
}

int fmha_dispatcher_kernel_count(void) {
    Opened& one = opened();
    const std::lock_guard turn(one.lock);
    return static_cast<int>(fmha_kernel_count(one.context));
}

void fmha_dispatcher_cleanup(void) {
    Opened& one = opened();
    const std::lock_guard turn(one.lock);
    fmha_destroy(one.context);
    one.context = nullptr;
}

int fmha_dispatcher_run_fwd(const void* q, const void* k, const void* v, void* o, int batch, int nhead_q,
                            int nhead_k, int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale,
                            int mask_type, int bias_type, int has_lse, int has_dropout, int traits_hdim_q,
                            int traits_hdim_v, int v_rowmajor, int perm, const char* data_type,
                            int group_mode, int window_left, int window_right, int has_logits, int has_sink,
                            int, float* time_ms) {
    return guarded(time_ms, [&](fmha_context* context) {
        const Kind& kind = kind_of(data_type);
        const Sizes sizes{batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v};
        refuse(bias_type != 0, "bias_type", "a bias");
        refuse(has_dropout != 0, "has_dropout", "its probability");
        refuse(has_logits != 0, "has_logits", "the soft-cap");
        refuse(has_sink != 0, "has_sink", "sinks");
        if ((traits_hdim_q > 0 && traits_hdim_q != hdim_q) || (traits_hdim_v > 0 && traits_hdim_v != hdim_v))
            throw std::invalid_argument("traits_hdim_q and traits_hdim_v differ from the tensors' channels");
        const bool group = group_mode != 0, heads_first = perm != 0;
        if (group && v_rowmajor == 0) throw std::invalid_argument("a group has V by rows; v_rowmajor is 0");
        auto args = fresh<fmha_fwd_args>(FMHA_FWD, kind, sizes, group);
        Placed placed(group, sizes);
        placed.lengths(args.lengths);
        args.q = placed.input(q, sizes.rows(hdim_q, kind.input, heads_first));
        args.k = placed.input(k, sizes.keys(hdim_q, kind.input, heads_first));
        args.v = placed.input(v, sizes.keys(hdim_v, kind.input, heads_first));
        if (v_rowmajor == 0) {
            args.shape.v_layout = FMHA_V_COLUMN;
            args.v.head_stride = heads_first ? std::int64_t{hdim_v} * seqlen_k : seqlen_k;
            args.v.row_stride = 1;
            args.v.col_stride = heads_first ? seqlen_k : std::int64_t{nhead_k} * seqlen_k;
        }
        args.o = placed.output(o, sizes.rows(hdim_v, kind.output, heads_first));
        std::vector<float> lse(has_lse != 0 ? static_cast<std::size_t>(sizes.batch * nhead_q * seqlen_q) : 0);
        if (has_lse != 0)
            args.lse = group ? fmha_tensor{lse.data(), 0, sizes.batch * seqlen_q, 1, 1}
                             : sizes.rows(1, 4).view(lse.data());
        args.score.scale_s = scale;
        set_mask(args.mask, mask_type, window_left, window_right);
        const double milliseconds = launch(context, &args);
        placed.finish();
        return milliseconds;
    });
}

int fmha_dispatcher_run_bwd(const void* q, const void* k, const void* v, const void* o, const void* lse,
                            const void* d_o, void* dq, void* dk, void* dv, int batch, int nhead_q,
                            int nhead_k, int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale,
                            const char* data_type, int mask_type, int bias_type, int has_dropout,
                            int has_dbias, int deterministic, int group_mode, int store_randval, int,
                            float* time_ms) {
    return guarded(time_ms, [&](fmha_context* context) {
        const Kind& kind = kind_of(data_type);
        const Sizes sizes{batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v};
        refuse(bias_type != 0, "bias_type", "a bias");
        refuse(has_dropout != 0, "has_dropout", "its probability");
        refuse(has_dbias != 0, "has_dbias", "the gradient of a bias");
        refuse(store_randval != 0, "store_randval", "random bytes");
        const bool group = group_mode != 0;
        auto args = fresh<fmha_bwd_args>(FMHA_BWD, kind, sizes, group);
        Placed placed(group, sizes);
        placed.lengths(args.lengths);
        args.q = placed.input(q, sizes.rows(hdim_q, kind.input));
        args.k = placed.input(k, sizes.keys(hdim_q, kind.input));
        args.v = placed.input(v, sizes.keys(hdim_v, kind.input));
        args.o = placed.input(o, sizes.rows(hdim_v, kind.output));
        args.d_o = placed.input(d_o, sizes.rows(hdim_v, kind.input));
        args.dq = placed.output(dq, sizes.rows(hdim_q, kind.input));
        args.dk = placed.output(dk, sizes.keys(hdim_q, kind.input));
        args.dv = placed.output(dv, sizes.keys(hdim_v, kind.input));
        args.reduce_dk_dv = 1;
        args.deterministic = deterministic != 0;
        // LSE and the row sums: one number a row, in a group [heads, rows of all].
        Bytes numbers;
        std::vector<float> sums(static_cast<std::size_t>(sizes.batch * nhead_q * seqlen_q));
        if (group) {
            const Dense heads_last{1, batch, nhead_q, seqlen_q, sizeof(float), true};
            numbers = packed(lse, heads_last); // exchanges entries and heads
            args.lse = {numbers.data(), 0, sizes.batch * seqlen_q, 1, 1};
            args.d = {sums.data(), 0, sizes.batch * seqlen_q, 1, 1};
        } else {
            args.lse = sizes.rows(1, sizeof(float)).view(lse);
            args.d = sizes.rows(1, sizeof(float)).view(sums.data());
        }
        args.score.scale_s = scale;
        set_mask(args.mask, mask_type, -1, -1);
        const double milliseconds = launch(context, &args);
        placed.finish();
        return milliseconds;
    });
}

int fmha_dispatcher_run_splitkv(const void* q, const void* k, const void* v, void* o, int batch, int nhead_q,
                                int nhead_k, int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale,
                                int mask_type, int num_splits, int v_rowmajor, const char* data_type,
                                int has_lse, int group_mode, int perm, int has_logits, int bias_type,
                                int has_sink, int paged, int page_size, int window_left, int window_right,
                                float* time_ms) {
    return guarded(time_ms, [&](fmha_context* context) {
        const Kind& kind = kind_of(data_type);
        const Sizes sizes{batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v};
        refuse(bias_type != 0, "bias_type", "a bias");
        refuse(has_logits != 0, "has_logits", "the soft-cap");
        refuse(has_sink != 0, "has_sink", "sinks");
        if (v_rowmajor == 0) throw std::invalid_argument("split-KV has V by rows; v_rowmajor is 0");
        const bool group = group_mode != 0, heads_first = perm != 0;
        if (paged != 0 && !heads_first) throw std::invalid_argument("pages are cut with perm 1; perm is 0");
        auto args = fresh<fmha_splitkv_args>(FMHA_FWD_SPLITKV, kind, sizes, group);
        Placed placed(group, sizes);
        placed.lengths(args.lengths);
        args.q = placed.input(q, sizes.rows(hdim_q, kind.input, heads_first));
        args.o = placed.output(o, sizes.rows(hdim_v, kind.output, heads_first));
        std::vector<Pool> pool;
        if (paged != 0) {
            args.lengths.seqstart_k = nullptr;
            pool.emplace_back(k, v, kind, sizes, std::max<std::int64_t>(page_size, least_page), false);
            pool.front().give(args, sizes, false);
        } else {
            args.k = placed.input(k, sizes.keys(hdim_q, kind.input, heads_first));
            args.v = placed.input(v, sizes.keys(hdim_v, kind.input, heads_first));
        }
        std::vector<float> lse(has_lse != 0 ? static_cast<std::size_t>(sizes.batch * nhead_q * seqlen_q) : 0);
        if (has_lse != 0)
            args.lse = group ? fmha_tensor{lse.data(), 0, sizes.batch * seqlen_q, 1, 1}
                             : sizes.rows(1, 4).view(lse.data());
        args.num_splits = std::max(num_splits, 0);
        args.score.scale_s = scale;
        set_mask(args.mask, mask_type, window_left, window_right);
        const double milliseconds = launch(context, &args);
        placed.finish();
        return milliseconds;
    });
}

int fmha_dispatcher_run_pagedkv(const void* q, const void* k, const void* v, void* o, int batch, int nhead_q,
                                int nhead_k, int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale,
                                int mask_type, int page_size, int v_rowmajor, const char* data_type,
                                int has_lse, int has_logits, int has_sink, int, int bias_type,
                                float* time_ms) {
    return guarded(time_ms, [&](fmha_context* context) {
        const Kind& kind = kind_of(data_type);
        const Sizes sizes{batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v};
        refuse(bias_type != 0, "bias_type", "a bias");
        refuse(has_logits != 0, "has_logits", "the soft-cap");
        refuse(has_sink != 0, "has_sink", "sinks");
        if (v_rowmajor == 0) throw std::invalid_argument("paged-KV has V by rows; v_rowmajor is 0");
        auto args = fresh<fmha_pagedkv_args>(FMHA_FWD_PAGEDKV, kind, sizes, false);
        args.q = sizes.rows(hdim_q, kind.input).view(q);
        args.o = sizes.rows(hdim_v, kind.output).view(o);
        Pool pool(k, v, kind, sizes, std::max<std::int64_t>(page_size, least_page), false);
        pool.give(args, sizes, false);
        std::vector<float> lse(has_lse != 0 ? static_cast<std::size_t>(sizes.batch * nhead_q * seqlen_q) : 0);
        if (has_lse != 0) args.lse = sizes.rows(1, 4).view(lse.data());
        args.score.scale_s = scale;
        set_mask(args.mask, mask_type, -1, -1);
        return launch(context, &args);
    });
}

int fmha_dispatcher_run_appendkv(const void*, const void* k_new, const void* v_new, int batch, int nhead_q,
                                 int nhead_k, int, int seqlen_knew, int hdim_q, int hdim_v, int v_rowmajor,
                                 int rope, int, int, const char* data_type, float* time_ms) {
    return guarded(time_ms, [&](fmha_context* context) {
        const Kind& kind = kind_of(data_type);
        // The cache has room for the new tokens.
        const Sizes sizes{batch, nhead_q, nhead_k, 1, seqlen_knew, hdim_q, hdim_v};
        refuse(rope != 0, "rope", "rotary tables");
        if (v_rowmajor == 0) throw std::invalid_argument("append-KV has V by rows; v_rowmajor is 0");
        auto args = fresh<fmha_appendkv_args>(FMHA_FWD_APPENDKV, kind, sizes, false);
        args.shape.seqlen_q = args.shape.max_seqlen_q = args.shape.max_seqlen_k = 0;
        args.seqlen_knew = seqlen_knew;
        const Dense k = sizes.keys(hdim_q, kind.input), v = sizes.keys(hdim_v, kind.input);
        Bytes k_cache(static_cast<std::size_t>(k.bytes())), v_cache(static_cast<std::size_t>(v.bytes()));
        const std::vector<std::int32_t> empty(static_cast<std::size_t>(batch));
        args.k = k.view(k_cache.data());
        args.v = v.view(v_cache.data());
        args.k_new = k.view(k_new);
        args.v_new = v.view(v_new);
        args.lengths.seqlen_k = empty.data();
        return launch(context, &args);
    });
}

int fmha_dispatcher_run_batch_prefill(const void* q, const void* k, const void* v, void* o, int batch,
                                      int nhead_q, int nhead_k, int seqlen_q, int seqlen_k, int hdim_q,
                                      int hdim_v, float scale, int mask_type, int bias_type, int page_size,
                                      int kv_layout, int kv_lookup, int v_rowmajor, const char* data_type,
                                      int has_lse, int has_dropout, int has_logits, int has_sink, int,
                                      float* time_ms) {
    return guarded(time_ms, [&](fmha_context* context) {
        const Kind& kind = kind_of(data_type);
        const Sizes sizes{batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v};
        refuse(bias_type != 0, "bias_type", "a bias");
        refuse(has_dropout != 0, "has_dropout", "its probability");
        refuse(has_logits != 0, "has_logits", "the soft-cap");
        refuse(has_sink != 0, "has_sink", "sinks");
        if (v_rowmajor == 0) throw std::invalid_argument("batch prefill has V by rows; v_rowmajor is 0");
        const bool vectorized = kv_layout == 0, by_lists = kv_lookup != 0;
        const std::int64_t vector = 16 / kind.input;
        if (page_size < 1) throw std::invalid_argument("page_size is below 1");
        if (vectorized && (page_size % vector != 0 || hdim_q % vector != 0))
            throw std::invalid_argument(
                "vectorized pages hold whole vectors of 16 bytes; page_size or hdim_q does not");
        auto args = fresh<fmha_batch_prefill_args>(FMHA_BATCH_PREFILL, kind, sizes, true);
        Placed placed(true, sizes);
        placed.lengths(args.lengths);
        args.lengths.seqstart_k = nullptr;
        args.q = placed.input(q, sizes.rows(hdim_q, kind.input));
        args.o = placed.output(o, sizes.rows(hdim_v, kind.output));
        Pool pool(k, v, kind, sizes, page_size, vectorized);
        pool.give(args, sizes, by_lists);
        args.place.kv_layout = vectorized ? FMHA_KV_VECTORIZED : FMHA_KV_LINEAR;
        args.place.kv_lookup = by_lists ? FMHA_KV_SGLANG_1D : FMHA_KV_VLLM_2D;
        std::vector<float> lse(has_lse != 0 ? static_cast<std::size_t>(sizes.batch * nhead_q * seqlen_q) : 0);
        if (has_lse != 0) args.lse = {lse.data(), 0, sizes.batch * seqlen_q, 1, 1};
        args.score.scale_s = scale;
        set_mask(args.mask, mask_type, -1, -1);
        const double milliseconds = launch(context, &args);
        placed.finish();
        return milliseconds;
    });
}
