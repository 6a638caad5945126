#include "dispatcher/c_dispatcher/arrays.hpp"

#include <fmha/dispatcher.h>
#include <fmha/fmha.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string>

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
    std::string arch;
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

/// Features of a problem that no call has an argument for.
void refuse_features(int bias_type, int has_dropout, int has_logits, int has_sink, int has_skip) {
    refuse(bias_type != 0, "bias_type", "a bias");
    refuse(has_dropout != 0, "has_dropout", "its probability");
    refuse(has_logits != 0, "has_logits", "the soft-cap");
    refuse(has_sink != 0, "has_sink", "sinks");
    refuse(has_skip != 0, "has_skip", "min_seqlen_q");
}

/// `call` begins the sentence.
void require_rows_of_v(int v_rowmajor, const char* call) {
    if (v_rowmajor == 0) throw std::invalid_argument(std::string(call) + " has V by rows; v_rowmajor is 0");
}

Sizes checked(const Sizes& s) {
    if (std::min({s.batch, s.nhead_q, s.nhead_k, s.seqlen_q, s.seqlen_k, s.hdim_q, s.hdim_v}) < 1)
        throw std::invalid_argument("sizes have to be 1 or more");
    return s;
}

/// The arguments of one call and the tensors that they point to.
template <class Args>
struct Call {
    const Kind& kind;
    Sizes sizes;
    bool group;
    Args args{};
    Placed placed;
    std::vector<float> statistics; ///< one number a row, which the caller does not get

    Call(fmha_api api, const char* data_type, const Sizes& given, bool in_group)
        : kind(kind_of(data_type)), sizes(checked(given)), group(in_group), placed(in_group, sizes) {
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
        placed.lengths(args.lengths);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() = default;

    void queries(const void* q, void* o, bool heads_first = true) {
        args.q = placed.input(q, sizes.rows(sizes.hdim_q, kind.input, heads_first));
        args.o = placed.output(o, sizes.rows(sizes.hdim_v, kind.output, heads_first));
    }
    void keys(const void* k, const void* v, bool heads_first = true) {
        args.k = placed.input(k, sizes.keys(sizes.hdim_q, kind.input, heads_first));
        args.v = placed.input(v, sizes.keys(sizes.hdim_v, kind.input, heads_first));
    }
    /// One number a row; of a group [heads, rows of all].
    fmha_tensor row_numbers() {
        statistics.resize(static_cast<std::size_t>(sizes.batch * sizes.nhead_q * sizes.seqlen_q));
        return group ? fmha_tensor{statistics.data(), 0, sizes.batch * sizes.seqlen_q, 1, 1}
                     : sizes.rows(1, sizeof(float)).view(statistics.data());
    }
    void score(float scale, int mask_type, int left, int right) {
        args.score.scale_s = scale;
        args.mask.type = mask_type;
        args.mask.window_left = left;
        const bool causal = mask_type == FMHA_TOP_LEFT || mask_type == FMHA_BOTTOM_RIGHT;
        args.mask.window_right = causal && left == -1 && right == -1 ? 0 : right;
    }
    double run(fmha_context* context) const {
        fmha_run_info info{};
        info.size = sizeof info;
        info.version = FMHA_ABI_VERSION;
        if (fmha_run_host(context, &args, &info) != FMHA_OK)
            throw std::runtime_error(fmha_last_error(context));
        placed.finish();
        return info.milliseconds;
    }
};

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
    const std::string asked = arch != nullptr ? arch : "gfx950";
    if (one.context != nullptr) {
        if (one.arch == asked) return 0;
        std::fprintf(stderr, "fmha: kernels of %s are open, not of %s; fmha_dispatcher_cleanup closes them\n",
                     one.arch.c_str(), asked.c_str());
        return -1;
    }
    one.arch = asked;
    fmha_context_options options{};
    options.size = sizeof options;
    options.version = FMHA_ABI_VERSION;
    options.arch = one.arch.c_str();
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
                            int has_skip, float* time_ms) {
    return guarded(time_ms, [&](fmha_context* context) {
        const Sizes sizes{batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v};
        refuse_features(bias_type, has_dropout, has_logits, has_sink, has_skip);
        if ((traits_hdim_q > 0 && traits_hdim_q != hdim_q) || (traits_hdim_v > 0 && traits_hdim_v != hdim_v))
            throw std::invalid_argument("traits_hdim_q and traits_hdim_v differ from the tensors' channels");
        const bool group = group_mode != 0, heads_first = perm != 0;
        if (group) require_rows_of_v(v_rowmajor, "a group");
        Call<fmha_fwd_args> call(FMHA_FWD, data_type, sizes, group);
        auto& args = call.args;
        call.queries(q, o, heads_first);
        call.keys(k, v, heads_first);
        if (v_rowmajor == 0) {
            args.shape.v_layout = FMHA_V_COLUMN;
            args.v.head_stride = heads_first ? std::int64_t{hdim_v} * seqlen_k : seqlen_k;
            args.v.row_stride = 1;
            args.v.col_stride = heads_first ? seqlen_k : std::int64_t{nhead_k} * seqlen_k;
        }
        if (has_lse != 0) args.lse = call.row_numbers();
        call.score(scale, mask_type, window_left, window_right);
        return call.run(context);
    });
}

int fmha_dispatcher_run_bwd(const void* q, const void* k, const void* v, const void* o, const void* lse,
                            const void* d_o, void* dq, void* dk, void* dv, int batch, int nhead_q,
                            int nhead_k, int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale,
                            const char* data_type, int mask_type, int bias_type, int has_dropout,
                            int has_dbias, int deterministic, int group_mode, int store_randval, int,
                            float* time_ms) {
    return guarded(time_ms, [&](fmha_context* context) {
        const Sizes sizes{batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v};
        refuse_features(bias_type, has_dropout, 0, 0, 0);
        refuse(has_dbias != 0, "has_dbias", "the gradient of a bias");
        refuse(store_randval != 0, "store_randval", "random bytes");
        const bool group = group_mode != 0;
        Call<fmha_bwd_args> call(FMHA_BWD, data_type, sizes, group);
        auto& args = call.args;
        const auto queries = [&](const void* data, std::int64_t width, std::int64_t bytes) {
            return call.placed.input(data, sizes.rows(width, bytes));
        };
        call.keys(k, v);
        args.q = queries(q, hdim_q, call.kind.input);
        args.o = queries(o, hdim_v, call.kind.output);
        args.d_o = queries(d_o, hdim_v, call.kind.input);
        args.dq = call.placed.output(dq, sizes.rows(hdim_q, call.kind.input));
        args.dk = call.placed.output(dk, sizes.keys(hdim_q, call.kind.input));
        args.dv = call.placed.output(dv, sizes.keys(hdim_v, call.kind.input));
        args.reduce_dk_dv = 1;
        args.deterministic = deterministic != 0;
        args.d = call.row_numbers();
        Bytes numbers;
        if (group) {
            const Dense heads_last{1, batch, nhead_q, seqlen_q, sizeof(float), true};
            numbers = packed(lse, heads_last); // exchanges entries and heads
            args.lse = {numbers.data(), 0, sizes.batch * seqlen_q, 1, 1};
        } else {
            args.lse = sizes.rows(1, sizeof(float)).view(lse);
        }
        call.score(scale, mask_type, -1, -1);
        return call.run(context);
    });
}

int fmha_dispatcher_run_splitkv(const void* q, const void* k, const void* v, void* o, int batch, int nhead_q,
                                int nhead_k, int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale,
                                int mask_type, int num_splits, int v_rowmajor, const char* data_type,
                                int has_lse, int group_mode, int perm, int has_logits, int bias_type,
                                int has_sink, int paged, int page_size, int window_left, int window_right,
                                float* time_ms) {
    return guarded(time_ms, [&](fmha_context* context) {
        const Sizes sizes{batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v};
        refuse_features(bias_type, 0, has_logits, has_sink, 0);
        require_rows_of_v(v_rowmajor, "split-KV");
        const bool group = group_mode != 0, heads_first = perm != 0;
        if (paged != 0 && !heads_first) throw std::invalid_argument("pages are cut with perm 1; perm is 0");
        Call<fmha_splitkv_args> call(FMHA_FWD_SPLITKV, data_type, sizes, group);
        auto& args = call.args;
        call.queries(q, o, heads_first);
        std::vector<Pool> pool;
        if (paged != 0) {
            args.lengths.seqstart_k = nullptr;
            pool.emplace_back(k, v, call.kind, sizes, std::max<std::int64_t>(page_size, least_page), false);
            pool.front().give(args, sizes, false);
        } else {
            call.keys(k, v, heads_first);
        }
        if (has_lse != 0) args.lse = call.row_numbers();
        args.num_splits = std::max(num_splits, 0);
        call.score(scale, mask_type, window_left, window_right);
        return call.run(context);
    });
}

int fmha_dispatcher_run_pagedkv(const void* q, const void* k, const void* v, void* o, int batch, int nhead_q,
                                int nhead_k, int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale,
                                int mask_type, int page_size, int v_rowmajor, const char* data_type,
                                int has_lse, int has_logits, int has_sink, int has_skip, int bias_type,
                                float* time_ms) {
    return guarded(time_ms, [&](fmha_context* context) {
        const Sizes sizes{batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v};
        refuse_features(bias_type, 0, has_logits, has_sink, has_skip);
        require_rows_of_v(v_rowmajor, "paged-KV");
        Call<fmha_pagedkv_args> call(FMHA_FWD_PAGEDKV, data_type, sizes, false);
        auto& args = call.args;
        call.queries(q, o);
        Pool pool(k, v, call.kind, sizes, std::max<std::int64_t>(page_size, least_page), false);
        pool.give(args, sizes, false);
        if (has_lse != 0) args.lse = call.row_numbers();
        call.score(scale, mask_type, -1, -1);
        return call.run(context);
    });
}

int fmha_dispatcher_run_appendkv(const void*, const void* k_new, const void* v_new, int batch, int nhead_q,
                                 int nhead_k, int, int seqlen_knew, int hdim_q, int hdim_v, int v_rowmajor,
                                 int rope, int, int, const char* data_type, float* time_ms) {
    return guarded(time_ms, [&](fmha_context* context) {
        // The cache has room for the new tokens.
        const Sizes sizes{batch, nhead_q, nhead_k, 1, seqlen_knew, hdim_q, hdim_v};
        refuse(rope != 0, "rope", "rotary tables");
        require_rows_of_v(v_rowmajor, "append-KV");
        Call<fmha_appendkv_args> call(FMHA_FWD_APPENDKV, data_type, sizes, false);
        auto& args = call.args;
        args.shape.seqlen_q = args.shape.max_seqlen_q = args.shape.max_seqlen_k = 0;
        args.seqlen_knew = seqlen_knew;
        const Dense k = sizes.keys(hdim_q, call.kind.input), v = sizes.keys(hdim_v, call.kind.input);
        Bytes k_cache(static_cast<std::size_t>(k.bytes())), v_cache(static_cast<std::size_t>(v.bytes()));
        const std::vector<std::int32_t> empty(static_cast<std::size_t>(batch));
        args.k = k.view(k_cache.data());
        args.v = v.view(v_cache.data());
        args.k_new = k.view(k_new);
        args.v_new = v.view(v_new);
        args.lengths.seqlen_k = empty.data();
        return call.run(context);
    });
}

int fmha_dispatcher_run_batch_prefill(const void* q, const void* k, const void* v, void* o, int batch,
                                      int nhead_q, int nhead_k, int seqlen_q, int seqlen_k, int hdim_q,
                                      int hdim_v, float scale, int mask_type, int bias_type, int page_size,
                                      int kv_layout, int kv_lookup, int v_rowmajor, const char* data_type,
                                      int has_lse, int has_dropout, int has_logits, int has_sink,
                                      int has_skip, float* time_ms) {
    return guarded(time_ms, [&](fmha_context* context) {
        const Sizes sizes{batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v};
        refuse_features(bias_type, has_dropout, has_logits, has_sink, has_skip);
        require_rows_of_v(v_rowmajor, "batch prefill");
        const bool vectorized = kv_layout == 0, by_lists = kv_lookup != 0;
        if (page_size < 1) throw std::invalid_argument("page_size is below 1");
        Call<fmha_batch_prefill_args> call(FMHA_BATCH_PREFILL, data_type, sizes, true);
        const std::int64_t vector = 16 / call.kind.input;
        if (vectorized && (page_size % vector != 0 || hdim_q % vector != 0))
            throw std::invalid_argument(
                "vectorized pages hold whole vectors of 16 bytes; page_size or hdim_q does not");
        auto& args = call.args;
        args.lengths.seqstart_k = nullptr;
        call.queries(q, o);
        Pool pool(k, v, call.kind, sizes, page_size, vectorized);
        pool.give(args, sizes, by_lists);
        args.place.kv_layout = vectorized ? FMHA_KV_VECTORIZED : FMHA_KV_LINEAR;
        args.place.kv_lookup = by_lists ? FMHA_KV_SGLANG_1D : FMHA_KV_VLLM_2D;
        if (has_lse != 0) args.lse = call.row_numbers();
        call.score(scale, mask_type, -1, -1);
        return call.run(context);
    });
}
