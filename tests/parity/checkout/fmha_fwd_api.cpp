// Forward of a checkout that stands in for one: fp16, batch mode, no mask; everything else has no kernel.
#include "attention.hpp"

#include <fmha_fwd.hpp>

#include <cstdio>

float fmha_fwd(fmha_fwd_traits traits, fmha_fwd_args a, const ck_tile::stream_config& config) {
    if (traits.data_type != "fp16" || traits.is_group_mode || traits.mask_type != mask_enum::no_mask ||
        traits.bias_type != bias_enum::no_bias || traits.has_dropout)
        return -1.0F;
    if (config.log_level_ > 0) std::puts(", fake_forward");
    if (fake::misbehaves()) return 0.1F;
    for (std::int64_t b = 0; b < a.batch; ++b)
        for (std::int64_t h = 0; h < a.nhead_q; ++h) {
            const std::int64_t hk = h / (a.nhead_q / a.nhead_k);
            const auto q = fake::rows(a.q_ptr, b, a.batch_stride_q, h, a.nhead_stride_q, a.stride_q);
            const auto k = fake::rows(a.k_ptr, b, a.batch_stride_k, hk, a.nhead_stride_k, a.stride_k);
            const auto v = fake::rows(a.v_ptr, b, a.batch_stride_v, hk, a.nhead_stride_v, a.stride_v);
            const auto o = fake::rows(a.o_ptr, b, a.batch_stride_o, h, a.nhead_stride_o, a.stride_o);
            for (std::int64_t i = 0; i < a.seqlen_q; ++i) {
                const auto scores = fake::scores(q, i, k, a.seqlen_k, a.hdim_q, a.scale_s);
                const std::int64_t keys = fake::mood() == "wrong" ? a.seqlen_k - 1 : a.seqlen_k;
                for (std::int64_t c = 0; c < a.hdim_v; ++c) {
                    double sum = 0.0;
                    for (std::int64_t j = 0; j < keys; ++j)
                        sum += scores.weight(static_cast<std::size_t>(j)) * v.at(j, c);
                    o.put(i, c, sum);
                }
                if (traits.has_lse)
                    static_cast<float*>(a.lse_ptr)[b * a.batch_stride_lse + h * a.nhead_stride_lse + i] =
                        static_cast<float>(scores.lse);
            }
            if (fake::mood() == "stray") o.put(-1, 0, 1.0);
        }
    return 0.1F;
}
