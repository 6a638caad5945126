#pragma once

#include "dispatcher/types/fields.hpp"
#include "dispatcher/types/fwd_args.hpp"

/// Field lists of the arguments, for who must reach every one of them. They stand apart from fwd_args.hpp because device
/// code includes that.
namespace fmha {

FMHA_FIELDS(TensorView, data, type, batch_stride, head_stride, row_stride, col_stride)
FMHA_FIELDS(LengthArrays, seqstart_q, seqstart_k, seqlen_q, seqlen_k, cu_seqlen_q, cu_seqlen_k)
FMHA_FIELDS(MaskArgs, type, left, right, sink)
FMHA_FIELDS(FwdArgs, mode, batch, nhead_q, nhead_k, seqlen_q, seqlen_k, max_seqlen_q, min_seqlen_q, hdim_q,
            hdim_v, q, k, v, o, lse, bias, randval, lengths, mask, bias_type, alibi_slopes, alibi_stride,
            scale_s, scale_o, logits_soft_cap, sink_logit, p_drop, seed, offset, qscale, q_descale, k_descale,
            v_descale, block_scale_size_q, block_scale_size_k, block_scale_seqstart_q, block_scale_seqstart_k)

/// Calls `visit(path, pointer)` for every pointer in `args`, present or not. A member that is added and not listed does
/// not compile, nor does one that might hide a pointer from this.
template <class Visit>
void each_pointer(FwdArgs& args, Visit&& visit) {
    each_leaf(args, [&](const std::string& path, auto& leaf) {
        using Leaf = std::remove_cvref_t<decltype(leaf)>;
        static_assert(std::is_pointer_v<Leaf> || std::is_arithmetic_v<Leaf> || std::is_enum_v<Leaf>,
                      "a struct among the arguments needs a field list");
        if constexpr (std::is_pointer_v<Leaf>) visit(path, leaf);
    });
}

} // namespace fmha
