#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/element.hpp"
#include "dispatcher/types/fields.hpp"

/// Field lists of the arguments, for who must reach every one of them. They stand apart from args.hpp because device
/// code includes that.
namespace fmha {

FMHA_FIELDS(TensorView, data, type, batch_stride, head_stride, row_stride, col_stride)
FMHA_FIELDS(Shape, mode, batch, nhead_q, nhead_k, seqlen_q, seqlen_k, max_seqlen_q, min_seqlen_q, hdim_q,
            hdim_v)
FMHA_FIELDS(LengthArrays, seqstart_q, seqstart_k, seqlen_q, seqlen_k, cu_seqlen_q, cu_seqlen_k)
FMHA_FIELDS(MaskArgs, type, left, right, sink)
FMHA_FIELDS(ScoreArgs, bias_type, alibi_slopes, alibi_stride, scale_s, scale_o, logits_soft_cap, sink_logit)
FMHA_FIELDS(DropoutArgs, p_drop, seed, offset)
FMHA_FIELDS(QuantArgs, qscale, q_descale, k_descale, v_descale, block_scale_size_q, block_scale_size_k,
            block_scale_seqstart_q, block_scale_seqstart_k)
FMHA_FIELDS(KvPlace, block_table, block_table_stride, kv_indptr, kv_page_indices, kv_last_page_lens,
            cache_batch_idx, page_size, page_count, is_gappy, layout, lookup)
FMHA_FIELDS(Partials, num_splits, o_acc, lse_acc)
FMHA_FIELDS(RopeArgs, type, rotary_dim, cos, sin)
FMHA_FIELDS(FwdArgs, shape, q, k, v, o, lse, bias, randval, lengths, mask, score, dropout, quant)
FMHA_FIELDS(SplitKvArgs, shape, q, k, v, o, lse, bias, lengths, mask, score, quant, place, partials)
FMHA_FIELDS(PagedKvArgs, shape, q, k, v, o, lse, bias, lengths, mask, score, quant, place)
FMHA_FIELDS(AppendKvArgs, shape, seqlen_knew, q, k, v, k_new, v_new, lengths, has_mask, rope, place)
FMHA_FIELDS(BatchPrefillArgs, shape, q, k, v, o, lse, bias, randval, lengths, mask, score, dropout, quant,
            place)
FMHA_FIELDS(BwdArgs, shape, q, k, v, o, lse, bias, d_o, randval, d, dq, dk, dv, dbias, d_sink, lengths, mask,
            score, dropout, workspace, deterministic, reduce_dk_dv)

/// Calls `visit(path, pointer)` for every pointer in `args`, present or not. A member that is added and not listed does
/// not compile, nor does a member that might hide a pointer from this.
template <class Args, class Visit>
void each_pointer(Args& args, Visit&& visit) {
    each_leaf(args, [&](const std::string& path, auto& leaf) {
        using Leaf = std::remove_cvref_t<decltype(leaf)>;
        static_assert(std::is_pointer_v<Leaf> || std::is_arithmetic_v<Leaf> || std::is_enum_v<Leaf>,
                      "a struct among the arguments needs a field list");
        if constexpr (std::is_pointer_v<Leaf>) visit(path, leaf);
    });
}

} // namespace fmha
