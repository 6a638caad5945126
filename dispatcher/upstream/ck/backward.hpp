#pragma once

#include "dispatcher/upstream/ck/backward_types.hpp"
#include "dispatcher/upstream/ck/parts.hpp"

/// Upstream's backward call as ours, and ours as upstream's.
namespace fmha::ck {

/// Upstream's side of a backward call.
struct BwdCall {
    fmha_bwd_traits traits;
    fmha_bwd_args args;
};

namespace detail {

/// Sizes stand in the traits and in the arguments.
template <Way way>
void sizes_again(const Link<way>& link, auto& traits, Shape& shape, std::int64_t& max_seqlen_k) {
    link.again("traits.seqlen_q", traits.seqlen_q, shape.seqlen_q);
    link.again("traits.seqlen_k", traits.seqlen_k, shape.seqlen_k);
    link.again("traits.batch", traits.batch, shape.batch);
    link.again("traits.max_seqlen_q", traits.max_seqlen_q, shape.max_seqlen_q);
    link.again("traits.max_seqlen_k", traits.max_seqlen_k, max_seqlen_k);
    link.again("traits.nhead_q", traits.nhead_q, shape.nhead_q);
    link.again("traits.nhead_k", traits.nhead_k, shape.nhead_k);
}

template <Way way>
void dropout_again(const Link<way>& link, auto& theirs, Signature& s, DropoutArgs& ours,
                   const Surroundings& around) {
    auto& [traits, a] = theirs;
    link.copy("has_dropout", traits.has_dropout, s.has_dropout);
    link.copy("p_drop", a.p_drop, ours.p_drop, s.has_dropout);
    if constexpr (Link<way>::to_ours) {
        if (!s.has_dropout) return;
        link.refuse(a.p_undrop != 1.0F - a.p_drop, "p_undrop", std::to_string(a.p_undrop),
                    "it is not 1 − p_drop (D-2)");
    } else {
        a.p_undrop = 1.0F;
        if (!s.has_dropout) {
            link.refuse(ours.p_drop != 0.0F, "has_dropout", "false", "the arguments drop weights");
            return link.clear(a.drop_seed_offset);
        }
        a.p_undrop = 1.0F - ours.p_drop;
    }
    seed_offset(link, a.drop_seed_offset, ours, around);
}

template <Way way>
void backward(const Link<way>& link, auto& theirs, Signature& s, BwdArgs& ours, std::int64_t& max_seqlen_k,
              const Surroundings& around) {
    auto& [traits, a] = theirs;
    sizes(link, traits, a, s, ours.shape);
    link.copy("max_seqlen_k", a.max_seqlen_k, max_seqlen_k);
    sizes_again(link, traits, ours.shape, max_seqlen_k);
    const bool batches = ours.shape.mode == Mode::batch;
    const ElementTypes types = types_of(s, around.arch);
    lengths(link, a, ours.lengths);
    mask(link, traits, a, s, ours.mask);
    link.copy("scale", a.scale, ours.score.scale_s);
    link.granted("scale_o", ours.score.scale_o, 1.0F, "upstream's backward has no such member");
    link.granted("logits_soft_cap", ours.score.logits_soft_cap, 0.0F,
                 "upstream's backward has no such member");
    link.copy("sink_ptr", a.sink_ptr, ours.score.sink_logit);
    link.copy("d_sink_ptr", a.d_sink_ptr, ours.d_sink);
    link.copy("workspace_ptr", a.workspace_ptr, ours.workspace);
    link.copy("is_deterministic", traits.is_deterministic, ours.deterministic);
    s.is_deterministic = ours.deterministic;
    link.granted("reduce_dk_dv", ours.reduce_dk_dv, false,
                 "upstream's backward writes dK and dV of every query head");
    dropout_again(link, theirs, s, ours.dropout, around);
    // Upstream's backward writes its random bytes for a look; ours reads bytes that forward wrote (D-7).
    if constexpr (Link<way>::to_ours) {
        link.refuse(traits.is_store_randval, "is_store_randval", "true",
                    "backward here stores no random bytes; forward does, and both have the same");
        ours.randval.type = ElementType::uint8;
    } else {
        traits.is_store_randval = false;
        link.refuse(ours.randval.present(), "randval", "given",
                    "upstream's backward replays them from the seed");
        link.clear(a.rand_val_ptr, a.stride_randval, a.nhead_stride_randval, a.batch_stride_randval);
    }

    link.rows("q", a.q_ptr, a.stride_q, a.nhead_stride_q, a.batch_stride_q, ours.q, types.q, batches);
    link.rows("k", a.k_ptr, a.stride_k, a.nhead_stride_k, a.batch_stride_k, ours.k, types.k, batches);
    link.rows("v", a.v_ptr, a.stride_v, a.nhead_stride_v, a.batch_stride_v, ours.v, types.v, batches);
    link.rows("o", a.o_ptr, a.stride_o, a.nhead_stride_o, a.batch_stride_o, ours.o, types.o, batches);
    link.rows("do", a.do_ptr, a.stride_do, a.nhead_stride_do, a.batch_stride_do, ours.d_o, types.q, batches);
    link.rows("dq", a.dq_ptr, a.stride_dq, a.nhead_stride_dq, a.batch_stride_dq, ours.dq, types.q, batches);
    link.rows("dk", a.dk_ptr, a.stride_dk, a.nhead_stride_dk, a.batch_stride_dk, ours.dk, types.q, batches);
    link.rows("dv", a.dv_ptr, a.stride_dv, a.nhead_stride_dv, a.batch_stride_dv, ours.dv, types.q, batches);
    bias(link, traits, a, ours.score, ours.bias, types.bias, batches);
    link.copy("has_dbias", traits.has_dbias, s.has_dbias);
    if constexpr (Link<way>::to_ours) {
        link.refuse(s.has_dbias && a.dbias_ptr == nullptr, "dbias_ptr", "null", "has_dbias asks for it");
        ours.dbias.type = types.q;
    }
    if (s.has_dbias)
        link.rows("dbias", a.dbias_ptr, a.stride_dbias, a.nhead_stride_dbias, a.batch_stride_dbias,
                  ours.dbias, types.q, batches);
    else
        link.clear(a.dbias_ptr, a.stride_dbias, a.nhead_stride_dbias, a.batch_stride_dbias);
    // LSE and D lie alike.
    link.numbers("lse", a.lse_ptr, a.nhead_stride_lsed, a.batch_stride_lsed, ours.lse, ElementType::fp32,
                 batches);
    link.numbers("d", a.d_ptr, a.nhead_stride_lsed, a.batch_stride_lsed, ours.d, ElementType::fp32, batches);
    const bool alike =
        ours.lse.head_stride == ours.d.head_stride && ours.lse.batch_stride == ours.d.batch_stride;
    link.granted("d", alike, true, "upstream has one pair of strides for LSE and D");
}

} // namespace detail

/// The problem and arguments that upstream's traits and arguments pose. Throws UnsupportedInvocation for a call that ours cannot describe.
inline Call<BwdArgs> to_ours(const BwdCall& theirs, const Surroundings& around) {
    Signature s;
    BwdArgs ours;
    std::int64_t max_seqlen_k = 0;
    detail::backward(Link<Way::to_ours>(), theirs, s, ours, max_seqlen_k, around);
    Call<BwdArgs> call = detail::posed(s, ours, around);
    call.problem.max_seqlen_k = max_seqlen_k;
    return call;
}

/// Upstream's traits and arguments for a call of ours. Throws UnsupportedInvocation for a call that upstream cannot describe.
inline BwdCall to_theirs(const Call<BwdArgs>& call) {
    BwdCall theirs{};
    Call<BwdArgs> ours = call;
    detail::backward(Link<Way::to_theirs>(), theirs, ours.problem.signature, ours.args,
                     ours.problem.max_seqlen_k, detail::of_arch(ours.problem.arch));
    return theirs;
}

} // namespace fmha::ck
