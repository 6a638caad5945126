#pragma once

#include "dispatcher/upstream/ck/forward_types.hpp"
#include "dispatcher/upstream/ck/parts.hpp"

/// Upstream's forward call as ours, and ours as upstream's.
namespace fmha::ck {

/// Upstream's side of a forward call.
struct FwdCall {
    fmha_fwd_traits traits;
    fmha_fwd_args args;
};

namespace detail {

template <Way way, class Theirs>
void descales(const Link<way>& link, Theirs& theirs, Signature& s, QuantArgs& ours, bool batches) {
    link.copy("qscale_type", theirs.traits.qscale_type, ours.qscale);
    s.qscale = ours.qscale;
    auto& a = theirs.args;
    const QScale scale = ours.qscale;
    link.refuse(scale == QScale::kv_blockscale || scale == QScale::per_token_head, "qscale_type",
                std::string(to_string(scale)), "forward has no such descales (section 15)");
    link.clear(a.q_descale_ptr, a.k_descale_ptr, a.v_descale_ptr, a.stride_q_descale, a.stride_k_descale,
               a.stride_v_descale, a.nhead_stride_q_descale, a.nhead_stride_k_descale,
               a.nhead_stride_v_descale, a.batch_stride_q_descale, a.batch_stride_k_descale,
               a.batch_stride_v_descale);
    const bool blocks = scale == QScale::blockscale, micro = scale == QScale::mx;
    link.copy("block_scale_size_q", a.block_scale_size_q, ours.block_scale_size_q, blocks);
    link.copy("block_scale_size_kv", a.block_scale_size_kv, ours.block_scale_size_k, blocks);
    link.copy("block_scale_seqstart_q_ptr", a.block_scale_seqstart_q_ptr, ours.block_scale_seqstart_q,
              blocks);
    link.copy("block_scale_seqstart_k_ptr", a.block_scale_seqstart_k_ptr, ours.block_scale_seqstart_k,
              blocks);
    link.copy("seqstart_v_scale_ptr", a.seqstart_v_scale_ptr, ours.block_scale_seqstart_k, micro);
    if (!blocks)
        link.granted("block_scale_seqstart_q", ours.block_scale_seqstart_q,
                     static_cast<const std::int32_t*>(nullptr),
                     "only blockscale has blocks of queries (Q-2)");
    if (scale == QScale::pertensor) {
        link.number("q_descale", a.q_descale_ptr, ours.q_descale);
        link.number("k_descale", a.k_descale_ptr, ours.k_descale);
        link.number("v_descale", a.v_descale_ptr, ours.v_descale);
    } else if (blocks) {
        link.numbers("q_descale", a.q_descale_ptr, a.nhead_stride_q_descale, a.batch_stride_q_descale,
                     ours.q_descale, ElementType::fp32, batches);
        link.numbers("k_descale", a.k_descale_ptr, a.nhead_stride_k_descale, a.batch_stride_k_descale,
                     ours.k_descale, ElementType::fp32, batches);
        link.numbers("v_descale", a.v_descale_ptr, a.nhead_stride_v_descale, a.batch_stride_v_descale,
                     ours.v_descale, ElementType::fp32, batches);
    } else if (micro) {
        link.rows("q_descale", a.q_descale_ptr, a.stride_q_descale, a.nhead_stride_q_descale,
                  a.batch_stride_q_descale, ours.q_descale, ElementType::e8m0, batches);
        link.rows("k_descale", a.k_descale_ptr, a.stride_k_descale, a.nhead_stride_k_descale,
                  a.batch_stride_k_descale, ours.k_descale, ElementType::e8m0, batches);
        // Stored by channel, key blocks adjacent; our view's row is the key block.
        link.rows("v_descale", a.v_descale_ptr, a.stride_v_descale, a.nhead_stride_v_descale,
                  a.batch_stride_v_descale, ours.v_descale, ElementType::e8m0, batches,
                  /*column_major=*/true);
    } else {
        no_descales(link, ours);
    }
}

template <Way way, class Theirs>
void forward(const Link<way>& link, Theirs& theirs, Signature& s, FwdArgs& ours, const Surroundings& around) {
    auto& [traits, a] = theirs;
    sizes(link, traits, a, s, ours.shape);
    const bool batches = ours.shape.mode == Mode::batch;
    const ElementTypes types = types_of(s, around.arch);
    if constexpr (Link<way>::to_ours) {
        link.refuse(a.head_start != 0, "head_start", std::to_string(a.head_start),
                    "a call computes all heads, since dropout counts them (D-5)");
        link.refuse(a.num_head_q_total != 0 && a.num_head_q_total != a.nhead_q, "num_head_q_total",
                    std::to_string(a.num_head_q_total),
                    "a call computes all heads, since dropout counts them (D-5)");
    } else {
        a.head_start = a.num_head_q_total = 0;
    }
    lengths(link, a, ours.lengths);
    mask(link, traits, a, s, ours.mask);
    scores(link, traits, a, s, ours.score);
    link.granted("scale_o", ours.score.scale_o, 1.0F, "upstream's forward has no such member");
    attention_tensors(link, traits, a, s, ours, types, batches);
    dropout(link, traits, a, s, ours.dropout, ours.randval, batches, around);
    descales(link, theirs, s, ours.quant, batches);
}

} // namespace detail

/// The problem and arguments that upstream's traits and arguments pose. Throws UnsupportedInvocation for a call that ours cannot describe.
inline Call<FwdArgs> to_ours(const FwdCall& theirs, const Surroundings& around) {
    Signature s;
    FwdArgs ours;
    detail::forward(Link<Way::to_ours>(), theirs, s, ours, around);
    return detail::posed(s, ours, around);
}

/// Upstream's traits and arguments for a call of ours. Throws UnsupportedInvocation for a call that upstream cannot describe.
inline FwdCall to_theirs(const Call<FwdArgs>& call) {
    FwdCall theirs{};
    Call<FwdArgs> ours = call;
    detail::forward(Link<Way::to_theirs>(), theirs, ours.problem.signature, ours.args,
                    detail::of_arch(ours.problem.arch));
    return theirs;
}

} // namespace fmha::ck
