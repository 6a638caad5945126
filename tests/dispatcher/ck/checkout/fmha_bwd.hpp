#pragma once
#include "bias.hpp"
#include "mask.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

using ck_tile::index_t;
using seed_and_offset =
    std::variant<std::pair<std::uint64_t, std::uint64_t>, std::pair<const void*, const void*>>;

// As they stood in May 2026, apart from the lists of the adapter, as in fmha_fwd.hpp.
struct FmhaMasks {};
struct fmha_bwd_args {
    const void *q_ptr, *k_ptr, *v_ptr, *bias_ptr, *o_ptr, *lse_ptr, *do_ptr;
    void *d_ptr, *rand_val_ptr, *dq_ptr, *dk_ptr, *dv_ptr, *dbias_ptr, *workspace_ptr;
    const void* sink_ptr;
    void* d_sink_ptr;
    const void* seqstart_q_ptr = nullptr;
    const void* seqstart_k_ptr = nullptr;
    const void* seqlen_q_ptr = nullptr;
    const void* seqlen_k_ptr = nullptr;
    const void* cu_seqlen_q_ptr = nullptr;
    const void* cu_seqlen_k_ptr = nullptr;
    index_t seqlen_q, seqlen_k, batch, max_seqlen_q, max_seqlen_k, hdim_q, hdim_v, nhead_q, nhead_k;
    float scale;
    index_t stride_q, stride_k, stride_v, stride_bias, stride_o, stride_randval, stride_do;
    index_t stride_dq, stride_dk, stride_dv, stride_dbias;
    index_t nhead_stride_q, nhead_stride_k, nhead_stride_v, nhead_stride_bias, nhead_stride_o;
    index_t nhead_stride_randval, nhead_stride_do, nhead_stride_lsed;
    index_t nhead_stride_dq, nhead_stride_dk, nhead_stride_dv, nhead_stride_dbias;
    index_t batch_stride_q, batch_stride_k, batch_stride_v, batch_stride_bias, batch_stride_o;
    index_t batch_stride_randval, batch_stride_do, batch_stride_lsed;
    index_t batch_stride_dq, batch_stride_dk, batch_stride_dv, batch_stride_dbias;
    index_t window_size_left, window_size_right, mask_type;
    float p_drop, p_undrop;
    seed_and_offset drop_seed_offset;
};
struct fmha_bwd_traits {
    int seqlen_q, seqlen_k, batch, max_seqlen_q, max_seqlen_k, hdim_q, hdim_v, nhead_q, nhead_k;
    std::string data_type;
    bool is_group_mode;
    mask_enum mask_type;
    bias_enum bias_type;
    bool has_dbias, has_dropout, is_store_randval, is_deterministic;
};

struct fmha_bwd_launcher {
    explicit fmha_bwd_launcher(const fmha_bwd_traits&);
    std::function<float(fmha_bwd_args, const ck_tile::stream_config&)> run;
    std::size_t workspace_size = 0;
#ifdef FAULT_AT_ONCE // as in releases before the asynchronous one
    std::function<void(void*)> prepare_workspace;
#else
    void prepare_workspace_async(void* workspace, const int* seqstart_q, const int* seqstart_k,
                                 const ck_tile::stream_config&,
                                 const std::function<std::shared_ptr<void>(std::size_t)>& pinned);
#endif
};
