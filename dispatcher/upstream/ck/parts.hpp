#pragma once

#include "dispatcher/invocation.hpp"
#include "dispatcher/upstream/ck/link.hpp"

/// Parts that several families share. Every function runs either way; `s` is our signature, complete in both.
namespace fmha::ck::detail {

/// Member `name` of both sides, `name` being upstream's.
#define FMHA_CK_COPY(link, theirs, name, ours) (link).copy(#name, (theirs).name, ours)

inline ElementTypes types_of(const Signature& s, const ArchName& arch) {
    return element_types(s.data_type, fp8_flavour(arch));
}

template <Way way, class Traits, class Args>
void sizes(const Link<way>& link, Traits& traits, Args& theirs, Signature& s, Shape& shape) {
    if constexpr (Link<way>::to_ours) {
        const auto type = parse_enum<DataType>(traits.data_type, /*accept_aliases=*/false);
        if (!type)
            throw UnsupportedInvocation("data_type is " + traits.data_type + ": allowed are " +
                                        allowed_names<DataType>());
        s.data_type = *type;
        if constexpr (requires { traits.is_group_mode; })
            s.mode = traits.is_group_mode ? Mode::group : Mode::batch;
        if constexpr (requires { traits.is_v_rowmajor; })
            s.v_layout = traits.is_v_rowmajor ? VLayout::row : VLayout::column;
        shape.mode = s.mode;
    } else {
        traits.data_type = std::string(to_string(s.data_type));
        if constexpr (requires { traits.is_group_mode; })
            traits.is_group_mode = shape.mode == Mode::group;
        else
            link.refuse(shape.mode != Mode::batch, "mode", "group", "upstream's structure has no such mode");
        if constexpr (requires { traits.is_v_rowmajor; })
            traits.is_v_rowmajor = s.v_layout == VLayout::row;
        else
            link.refuse(s.v_layout != VLayout::row, "v_layout", "column",
                        "upstream's structure has no such layout");
    }
    FMHA_CK_COPY(link, theirs, batch, shape.batch);
    FMHA_CK_COPY(link, theirs, nhead_q, shape.nhead_q);
    FMHA_CK_COPY(link, theirs, nhead_k, shape.nhead_k);
    FMHA_CK_COPY(link, theirs, seqlen_q, shape.seqlen_q);
    FMHA_CK_COPY(link, theirs, hdim_q, shape.hdim_q);
    FMHA_CK_COPY(link, theirs, hdim_v, shape.hdim_v);
    link.again("traits.hdim_q", traits.hdim_q, shape.hdim_q);
    link.again("traits.hdim_v", traits.hdim_v, shape.hdim_v);
    if constexpr (requires { theirs.seqlen_k; }) FMHA_CK_COPY(link, theirs, seqlen_k, shape.seqlen_k);
    if constexpr (requires { theirs.max_seqlen_q; })
        FMHA_CK_COPY(link, theirs, max_seqlen_q, shape.max_seqlen_q);
    if constexpr (requires { theirs.min_seqlen_q; }) {
        link.copy("skip_min_seqlen_q", traits.skip_min_seqlen_q, s.skip_min_seqlen_q);
        link.copy("min_seqlen_q", theirs.min_seqlen_q, shape.min_seqlen_q, s.skip_min_seqlen_q);
    } else {
        link.granted("min_seqlen_q", shape.min_seqlen_q, std::int64_t{0},
                     "upstream's structure has no such member");
    }
}

/// Length arrays; where a structure lacks one, it must be absent.
template <Way way, class Args>
void lengths(const Link<way>& link, Args& theirs, LengthArrays& ours) {
    const auto absent = [&](std::string_view name, const std::int32_t* array) {
        link.granted(name, array, static_cast<const std::int32_t*>(nullptr),
                     "upstream's structure has no such member");
    };
    if constexpr (requires { theirs.seqstart_q_ptr; })
        FMHA_CK_COPY(link, theirs, seqstart_q_ptr, ours.seqstart_q);
    else
        absent("seqstart_q", ours.seqstart_q);
    if constexpr (requires { theirs.seqstart_k_ptr; })
        FMHA_CK_COPY(link, theirs, seqstart_k_ptr, ours.seqstart_k);
    else
        absent("seqstart_k", ours.seqstart_k);
    if constexpr (requires { theirs.seqlen_q_ptr; })
        FMHA_CK_COPY(link, theirs, seqlen_q_ptr, ours.seqlen_q);
    else
        absent("seqlen_q", ours.seqlen_q);
    if constexpr (requires { theirs.seqlen_k_ptr; })
        FMHA_CK_COPY(link, theirs, seqlen_k_ptr, ours.seqlen_k);
    else
        absent("seqlen_k", ours.seqlen_k);
    if constexpr (requires { theirs.cu_seqlen_q_ptr; }) {
        FMHA_CK_COPY(link, theirs, cu_seqlen_q_ptr, ours.cu_seqlen_q);
        FMHA_CK_COPY(link, theirs, cu_seqlen_k_ptr, ours.cu_seqlen_k);
    } else {
        absent("cu_seqlen_q", ours.cu_seqlen_q);
        absent("cu_seqlen_k", ours.cu_seqlen_k);
    }
}

/// The mask: its type stands in traits and arguments, its sizes in the arguments (M-1, M-7, K-1).
template <Way way, class Traits, class Args>
void mask(const Link<way>& link, Traits& traits, Args& theirs, Signature& s, MaskArgs& ours) {
    link.copy("mask_type", theirs.mask_type, ours.type);
    link.again("traits.mask_type", traits.mask_type, ours.type);
    FMHA_CK_COPY(link, theirs, window_size_left, ours.left);
    FMHA_CK_COPY(link, theirs, window_size_right, ours.right);
    if constexpr (requires { theirs.sink_size; }) {
        link.copy("has_sink", traits.has_sink, s.has_sink);
        link.copy("sink_size", theirs.sink_size, ours.sink, s.has_sink);
    } else {
        link.granted("mask.sink", ours.sink, std::int64_t{0},
                     "upstream's structure has no sink tokens (K-2)");
    }
}

/// Elementwise bias or ALiBi slopes: one pointer, told apart by the traits; with slopes, stride_bias is the distance
/// between the slopes of entries.
template <Way way, class Traits, class Args>
void bias(const Link<way>& link, Traits& traits, Args& theirs, ScoreArgs& score, TensorView& view,
          ElementType type, bool has_batches) {
    link.copy("bias_type", traits.bias_type, score.bias_type);
    if (score.bias_type == BiasType::elementwise) {
        link.rows("bias", theirs.bias_ptr, theirs.stride_bias, theirs.nhead_stride_bias,
                  theirs.batch_stride_bias, view, type, has_batches);
        return;
    }
    link.clear(theirs.bias_ptr, theirs.stride_bias, theirs.nhead_stride_bias, theirs.batch_stride_bias);
    if constexpr (Link<way>::to_ours) view.type = type;
    if (score.bias_type != BiasType::alibi) return;
    link.copy("bias_ptr", theirs.bias_ptr, score.alibi_slopes);
    link.copy("stride_bias", theirs.stride_bias, score.alibi_stride);
}

/// Scale, soft-cap and sink logits of the families that have them.
template <Way way, class Traits, class Args>
void scores(const Link<way>& link, Traits& traits, Args& theirs, Signature& s, ScoreArgs& ours) {
    FMHA_CK_COPY(link, theirs, scale_s, ours.scale_s);
    link.copy("has_logits_soft_cap", traits.has_logits_soft_cap, s.has_logits_soft_cap);
    link.copy("logits_soft_cap", theirs.logits_soft_cap, ours.logits_soft_cap, s.has_logits_soft_cap);
    FMHA_CK_COPY(link, theirs, sink_ptr, ours.sink_logit);
}

/// Scales of static quantisation. Upstream multiplies P by scale_p before its cast and never divides by it again; exactly, that is part
/// of scale_o (T-6, O-1), so that scale_p comes back as 1 and scale_o as the product. Where nothing is quantised, its kernels read neither: a
/// value that would count is refused, 0 stands for a member that nobody set.
template <Way way, class Args>
void static_scales(const Link<way>& link, Args& theirs, bool quantised, float& scale_o) {
    if constexpr (Link<way>::to_ours) {
        if (quantised) {
            scale_o = theirs.scale_p * theirs.scale_o;
            return;
        }
        const auto neutral = [&](std::string_view name, float scale) {
            link.refuse(scale != 0.0F && scale != 1.0F, name, std::to_string(scale),
                        "only static quantisation scales P and the output (O-1)");
        };
        neutral("scale_p", theirs.scale_p);
        neutral("scale_o", theirs.scale_o);
    } else {
        theirs.scale_p = 1.0F;
        theirs.scale_o = quantised ? scale_o : 1.0F;
        if (!quantised)
            link.granted("scale_o", scale_o, 1.0F, "only static quantisation scales the output (O-1)");
    }
}

template <Way way, class Traits, class Args>
void lse(const Link<way>& link, Traits& traits, Args& theirs, Signature& s, TensorView& view,
         bool has_batches) {
    link.copy("has_lse", traits.has_lse, s.has_lse);
    if constexpr (Link<way>::to_ours) {
        link.refuse(s.has_lse && theirs.lse_ptr == nullptr, "lse_ptr", "null", "has_lse asks for it");
        view.type = ElementType::fp32;
        if (!s.has_lse) return;
    }
    link.numbers("lse", theirs.lse_ptr, theirs.nhead_stride_lse, theirs.batch_stride_lse, view,
                 ElementType::fp32, has_batches);
}

/// Q, K, V and O of forward and the families over a cache, bias and LSE. Pages and cache slots have a stride in every mode: `slots`.
template <Way way, class Traits, class Args, class Ours>
void attention_tensors(const Link<way>& link, Traits& traits, Args& a, Signature& s, Ours& ours,
                       const ElementTypes& types, bool slots) {
    const bool batches = ours.shape.mode == Mode::batch;
    link.rows("q", a.q_ptr, a.stride_q, a.nhead_stride_q, a.batch_stride_q, ours.q, types.q, batches);
    link.rows("k", a.k_ptr, a.stride_k, a.nhead_stride_k, a.batch_stride_k, ours.k, types.k, slots);
    link.rows("v", a.v_ptr, a.stride_v, a.nhead_stride_v, a.batch_stride_v, ours.v, types.v, slots,
              s.v_layout == VLayout::column);
    link.rows("o", a.o_ptr, a.stride_o, a.nhead_stride_o, a.batch_stride_o, ours.o, types.o, batches);
    bias(link, traits, a, ours.score, ours.bias, types.bias, batches);
    lse(link, traits, a, s, ours.lse, batches);
}

/// Seed and offset as numbers; those behind device pointers are read first (D-6).
template <Way way>
void seed_offset(const Link<way>&, auto& theirs, DropoutArgs& ours, const Surroundings& around) {
    if constexpr (!Link<way>::to_ours) {
        theirs = std::pair<std::uint64_t, std::uint64_t>(ours.seed, ours.offset);
    } else if (const auto* values = std::get_if<0>(&theirs)) {
        ours.seed = values->first;
        ours.offset = values->second;
    } else if (!around.read_number) {
        throw UnsupportedInvocation(
            "drop_seed_offset is a pair of device pointers: our arguments hold the two numbers "
            "(D-6), and no function was given that reads them");
    } else {
        ours.seed = around.read_number(std::get<1>(theirs).first);
        ours.offset = around.read_number(std::get<1>(theirs).second);
    }
}

/// Dropout of forward, and where its random bytes go (D-7).
template <Way way, class Traits, class Args>
void dropout(const Link<way>& link, Traits& traits, Args& theirs, Signature& s, DropoutArgs& ours,
             TensorView& randval, bool has_batches, const Surroundings& around) {
    link.copy("has_dropout", traits.has_dropout, s.has_dropout);
    link.copy("p_drop", theirs.p_drop, ours.p_drop, s.has_dropout);
    if constexpr (Link<way>::to_ours) {
        randval.type = ElementType::uint8;
        if (!s.has_dropout) return;
        link.refuse(theirs.s_randval && theirs.rand_val_ptr == nullptr, "rand_val_ptr", "null",
                    "s_randval asks for it");
    } else {
        theirs.s_randval = randval.present();
        if (!s.has_dropout) {
            link.refuse(randval.present() || ours.p_drop != 0.0F, "has_dropout", "false",
                        "the arguments drop weights");
            link.clear(theirs.drop_seed_offset);
            return;
        }
    }
    seed_offset(link, theirs.drop_seed_offset, ours, around);
    if (Link<way>::to_ours && !theirs.s_randval) return;
    link.rows("randval", theirs.rand_val_ptr, theirs.stride_randval, theirs.nhead_stride_randval,
              theirs.batch_stride_randval, randval, ElementType::uint8, has_batches);
}

/// Ours without a descale: families whose structures have none.
template <Way way>
void no_descales(const Link<way>& link, const QuantArgs& ours) {
    const bool none = ours.qscale == QScale::no_scale && !ours.q_descale.present() &&
                      !ours.k_descale.present() && !ours.v_descale.present();
    link.granted("quant", none, true, "the call has no descales upstream");
    const bool starts = ours.block_scale_seqstart_q != nullptr || ours.block_scale_seqstart_k != nullptr;
    link.granted("block_scale_seqstart", starts, false, "the call has no descales upstream");
}

inline Surroundings of_arch(const ArchName& arch) {
    Surroundings around;
    around.arch = arch;
    return around;
}

/// The problem of a call that has become ours.
template <class Args>
Call<Args> posed(const Signature& s, const Args& args, const Surroundings& around) {
    return {problem_of(s, args, around.arch), args};
}

} // namespace fmha::ck::detail
