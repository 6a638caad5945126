// Backward of a checkout that stands in for one, as far as its forward goes; its workspace is asked for and written, and holds nothing.
#include "attention.hpp"

#include <fmha_bwd.hpp>

#include <cstdio>
#include <cstring>

namespace {

float backward(const fmha_bwd_args& a) {
    if (fake::misbehaves()) return 0.1F;
    const auto pair = [&](std::int64_t b, std::int64_t h) {
        const std::int64_t hk = h / (a.nhead_q / a.nhead_k);
        const auto q = fake::rows(a.q_ptr, b, a.batch_stride_q, h, a.nhead_stride_q, a.stride_q);
        const auto k = fake::rows(a.k_ptr, b, a.batch_stride_k, hk, a.nhead_stride_k, a.stride_k);
        const auto v = fake::rows(a.v_ptr, b, a.batch_stride_v, hk, a.nhead_stride_v, a.stride_v);
        const auto o = fake::rows(a.o_ptr, b, a.batch_stride_o, h, a.nhead_stride_o, a.stride_o);
        const auto d_o = fake::rows(a.do_ptr, b, a.batch_stride_do, h, a.nhead_stride_do, a.stride_do);
        std::vector<double> dk(static_cast<std::size_t>(a.seqlen_k * a.hdim_q)),
            dv(static_cast<std::size_t>(a.seqlen_k * a.hdim_v));
        for (std::int64_t i = 0; i < a.seqlen_q; ++i) {
            const std::int64_t line = b * a.batch_stride_lsed + h * a.nhead_stride_lsed + i;
            auto scores = fake::scores(q, i, k, a.seqlen_k, a.hdim_q, a.scale);
            scores.lse = static_cast<const float*>(a.lse_ptr)[line];
            double delta = 0.0;
            for (std::int64_t c = 0; c < a.hdim_v; ++c) delta += d_o.at(i, c) * o.at(i, c);
            static_cast<float*>(a.d_ptr)[line] = static_cast<float>(delta);
            std::vector<double> dq(static_cast<std::size_t>(a.hdim_q));
            for (std::int64_t j = 0; j < a.seqlen_k; ++j) {
                const double p = scores.weight(static_cast<std::size_t>(j));
                double dp = 0.0;
                for (std::int64_t c = 0; c < a.hdim_v; ++c) {
                    dp += d_o.at(i, c) * v.at(j, c);
                    dv[static_cast<std::size_t>(j * a.hdim_v + c)] += p * d_o.at(i, c);
                }
                const double ds = a.scale * p * (dp - (fake::mood() == "wrong" ? 0.0 : delta));
                for (std::int64_t c = 0; c < a.hdim_q; ++c) {
                    dq[static_cast<std::size_t>(c)] += ds * k.at(j, c);
                    dk[static_cast<std::size_t>(j * a.hdim_q + c)] += ds * q.at(i, c);
                }
            }
            const auto to = fake::rows(a.dq_ptr, b, a.batch_stride_dq, h, a.nhead_stride_dq, a.stride_dq);
            for (std::int64_t c = 0; c < a.hdim_q; ++c) to.put(i, c, dq[static_cast<std::size_t>(c)]);
        }
        const auto to_k = fake::rows(a.dk_ptr, b, a.batch_stride_dk, h, a.nhead_stride_dk, a.stride_dk);
        const auto to_v = fake::rows(a.dv_ptr, b, a.batch_stride_dv, h, a.nhead_stride_dv, a.stride_dv);
        for (std::int64_t j = 0; j < a.seqlen_k; ++j) {
            for (std::int64_t c = 0; c < a.hdim_q; ++c)
                to_k.put(j, c, dk[static_cast<std::size_t>(j * a.hdim_q + c)]);
            for (std::int64_t c = 0; c < a.hdim_v; ++c)
                to_v.put(j, c, dv[static_cast<std::size_t>(j * a.hdim_v + c)]);
        }
    };
    for (std::int64_t b = 0; b < a.batch; ++b)
        for (std::int64_t h = 0; h < a.nhead_q; ++h) pair(b, h);
    return 0.1F;
}

} // namespace

fmha_bwd_launcher::fmha_bwd_launcher(const fmha_bwd_traits& traits) {
    const bool has_kernel =
        traits.data_type == "fp16" && !traits.is_group_mode && traits.mask_type == mask_enum::no_mask &&
        traits.bias_type == bias_enum::no_bias && !traits.has_dropout && !traits.has_dbias;
    workspace_size = has_kernel ? 64 : 0;
#ifdef FAULT_AT_ONCE
    prepare_workspace = [](void* workspace) { std::memset(workspace, 7, 64); };
#endif
    run = [has_kernel](const fmha_bwd_args& args, const ck_tile::stream_config& config) {
        if (!has_kernel) return -1.0F;
        if (static_cast<const char*>(args.workspace_ptr)[63] != 7) return 0.1F; // it was not prepared
        if (config.log_level_ > 0) std::puts(", fake_backward");
        return backward(args);
    };
}

#ifndef FAULT_AT_ONCE
void fmha_bwd_launcher::prepare_workspace_async(
    void* workspace, const int*, const int*, const ck_tile::stream_config&,
    const std::function<std::shared_ptr<void>(std::size_t)>& pinned) {
    const auto staging = pinned(64);
    std::memset(staging.get(), 7, 64);
    std::memcpy(workspace, staging.get(), 64);
}
#endif
