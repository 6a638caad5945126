#pragma once

#include "dispatcher/upstream/ck/forward_types.hpp"
#include "dispatcher/upstream/ck/parts.hpp"

/// Upstream's calls over a cache (split-KV, paged-KV, append-KV, batch prefill) as ours, and ours as upstream's.
namespace fmha::ck {

struct SplitKvCall {
    fmha_fwd_splitkv_traits traits;
    fmha_fwd_splitkv_args args;
};
struct PagedKvCall {
    fmha_fwd_pagedkv_traits traits;
    fmha_fwd_pagedkv_args args;
};
struct AppendKvCall {
    fmha_fwd_appendkv_traits traits;
    fmha_fwd_appendkv_args args;
};
struct BatchPrefillCall {
    fmha_batch_prefill_traits traits;
    fmha_batch_prefill_args args;
};

namespace detail {

/// Block table or cache slots (P-2, P-6). The members of pages count only beside a block table.
template <Way way, class Args>
void place(const Link<way>& link, Args& theirs, KvPlace& ours, const Surroundings& around) {
    FMHA_CK_COPY(link, theirs, block_table_ptr, ours.block_table);
    const bool paged = ours.block_table != nullptr;
    link.copy("batch_stride_block_table", theirs.batch_stride_block_table, ours.block_table_stride, paged);
    link.copy("page_block_size", theirs.page_block_size, ours.page_size, paged);
    FMHA_CK_COPY(link, theirs, cache_batch_idx, ours.cache_batch_idx);
    if constexpr (requires { theirs.is_gappy; })
        link.copy("is_gappy", theirs.is_gappy, ours.is_gappy, paged);
    else
        link.granted("is_gappy", ours.is_gappy, false, "upstream's structure has no such member");
    if constexpr (Link<way>::to_ours) ours.page_count = paged ? around.page_count : 0;
    link.granted("kv_layout", ours.layout == KvLayout::unset && ours.lookup == KvLookup::unset, true,
                 "only batch prefill has one");
    const bool lists =
        ours.kv_indptr != nullptr || ours.kv_page_indices != nullptr || ours.kv_last_page_lens != nullptr;
    link.granted("kv_page_indices", lists, false, "only batch prefill has one");
}

/// The parts that split-KV and paged-KV share.
template <Way way, class Theirs, class Args>
void over_cache(const Link<way>& link, Theirs& theirs, Signature& s, Args& ours, const Surroundings& around) {
    auto& [traits, a] = theirs;
    sizes(link, traits, a, s, ours.shape);
    const ElementTypes types = types_of(s, around.arch);
    lengths(link, a, ours.lengths);
    place(link, a, ours.place, around);
    const bool slots = ours.shape.mode == Mode::batch || ours.place.block_table != nullptr;
    mask(link, traits, a, s, ours.mask);
    scores(link, traits, a, s, ours.score);
    link.copy("do_fp8_static_quant", traits.do_fp8_static_quant, s.do_fp8_static_quant);
    static_scales(link, a, s.do_fp8_static_quant, ours.score.scale_o);
    attention_tensors(link, traits, a, s, ours, types, slots);
    no_descales(link, ours.quant);
}

/// The split is part of our head index (S-3), so that upstream's heads must be num_splits splits apart.
template <Way way>
void heads_apart(const Link<way>& link, std::string_view name, auto& nhead_stride, std::int64_t num_splits,
                 const TensorView& view) {
    if (!view.present()) return link.clear(nhead_stride);
    const std::int64_t apart = num_splits * view.head_stride;
    link.again(name, nhead_stride, apart);
}

template <Way way>
void attend(const Link<way>& link, auto& theirs, Signature& s, SplitKvArgs& ours,
            const Surroundings& around) {
    over_cache(link, theirs, s, ours, around);
    auto& a = theirs.args;
    Partials& partials = ours.partials;
    const bool batches = ours.shape.mode == Mode::batch;
    FMHA_CK_COPY(link, a, num_splits, partials.num_splits);
    link.rows("o_acc", a.o_acc_ptr, a.stride_o_acc, a.split_stride_o_acc, a.batch_stride_o_acc,
              partials.o_acc, ElementType::fp32, batches);
    link.numbers("lse_acc", a.lse_acc_ptr, a.split_stride_lse_acc, a.batch_stride_lse_acc, partials.lse_acc,
                 ElementType::fp32, batches);
    heads_apart(link, "nhead_stride_o_acc", a.nhead_stride_o_acc, partials.num_splits, partials.o_acc);
    heads_apart(link, "nhead_stride_lse_acc", a.nhead_stride_lse_acc, partials.num_splits, partials.lse_acc);
}

template <Way way>
void attend(const Link<way>& link, auto& theirs, Signature& s, PagedKvArgs& ours,
            const Surroundings& around) {
    if constexpr (Link<way>::to_ours)
        link.refuse(!theirs.traits.use_pagedkv, "use_pagedkv", "false",
                    "this family has no other form (section 17)");
    else
        theirs.traits.use_pagedkv = true;
    over_cache(link, theirs, s, ours, around);
}

/// cos or sin (0, 0, position, pair): rows of rotary_dim / 2 numbers without gaps (V-4).
template <Way way>
void table(const Link<way>& link, std::string_view name, auto& pointer, const RopeArgs& rope,
           TensorView& view, ElementType type) {
    const bool on = rope.rotary_dim > 0;
    link.copy(name, pointer, view.data, on);
    if constexpr (Link<way>::to_ours) {
        view.type = type;
        if (on) view.row_stride = rope.rotary_dim / 2;
    } else if (view.present()) {
        const bool plain = on && view.batch_stride == 0 && view.head_stride == 0 &&
                           view.row_stride == rope.rotary_dim / 2 && view.col_stride == 1 &&
                           view.type == type;
        link.refuse(!plain, name, "a table with gaps or of another type",
                    "upstream takes rows of rotary_dim / 2 numbers in the type of K");
    }
}

template <Way way>
void attend(const Link<way>& link, auto& theirs, Signature& s, AppendKvArgs& ours,
            const Surroundings& around) {
    auto& [traits, a] = theirs;
    sizes(link, traits, a, s, ours.shape);
    if constexpr (Link<way>::to_ours) ours.shape.seqlen_k = around.capacity;
    link.granted("max_seqlen_q", ours.shape.max_seqlen_q, std::int64_t{0},
                 "upstream's structure has no such member");
    const ElementTypes types = types_of(s, around.arch);
    lengths(link, a, ours.lengths);
    place(link, a, ours.place, around);
    FMHA_CK_COPY(link, a, seqlen_knew, ours.seqlen_knew);
    FMHA_CK_COPY(link, a, has_mask, ours.has_mask);
    link.copy("rope_type", traits.rope_type, ours.rope.type);
    s.rope = ours.rope.type;
    const bool rotates = s.rope != Rope::none;
    link.copy("rotary_dim", a.rotary_dim, ours.rope.rotary_dim, rotates);
    table(link, "rotary_cos", a.rotary_cos_ptr, ours.rope, ours.rope.cos, types.k);
    table(link, "rotary_sin", a.rotary_sin_ptr, ours.rope, ours.rope.sin, types.k);
    const bool column = s.v_layout == VLayout::column;
    link.rows("q", a.q_ptr, a.stride_q, a.nhead_stride_q, a.batch_stride_q, ours.q, types.q, true);
    link.rows("k", a.k_ptr, a.stride_k, a.nhead_stride_k, a.batch_stride_k, ours.k, types.k, true);
    link.rows("v", a.v_ptr, a.stride_v, a.nhead_stride_v, a.batch_stride_v, ours.v, types.v, true, column);
    link.rows("knew", a.knew_ptr, a.stride_knew, a.nhead_stride_knew, a.batch_stride_knew, ours.k_new,
              types.k, true);
    link.rows("vnew", a.vnew_ptr, a.stride_vnew, a.nhead_stride_vnew, a.batch_stride_vnew, ours.v_new,
              types.v, true, column);
    if constexpr (Link<way>::to_ours)
        link.refuse(a.sink_ptr != nullptr, "sink_ptr", "given", "no kernel that appends reads sink logits");
    link.clear(a.sink_ptr);
}

/// The two forms of the page table (B-4, B-5).
template <Way way, class Theirs>
void page_table(const Link<way>& link, Theirs& theirs, BatchPrefillArgs& ours) {
    auto& [traits, a] = theirs;
    KvPlace& place = ours.place;
    link.copy("kv_memory_layout", a.kv_memory_layout, place.layout);
    link.again("traits.kv_memory_layout", traits.kv_memory_layout, place.layout);
    link.copy("kv_lookup_table", a.kv_lookup_table, place.lookup);
    link.again("traits.kv_lookup_table", traits.kv_lookup_table, place.lookup);
    link.refuse(place.layout == KvLayout::unset || place.lookup == KvLookup::unset,
                "kv_memory_layout or kv_lookup_table", "unset", "batch prefill must state them (B-2)");
    link.copy("page_block_size", a.page_block_size, place.page_size);
    link.again("traits.page_size", traits.page_size, place.page_size);
    link.copy("num_total_pages", a.num_total_pages, place.page_count);
    const bool rows = place.lookup == KvLookup::vllm_2d;
    if constexpr (Link<way>::to_ours)
        (rows ? place.block_table : place.kv_page_indices) =
            static_cast<const std::int32_t*>(a.kv_page_indices);
    else
        a.kv_page_indices = const_cast<std::int32_t*>(rows ? place.block_table : place.kv_page_indices);
    link.copy("batch_stride_block_table", a.batch_stride_block_table, place.block_table_stride, rows);
    link.copy("kv_indptr", a.kv_indptr, place.kv_indptr, !rows);
    link.copy("kv_last_page_lens", a.kv_last_page_lens, place.kv_last_page_lens, !rows);
    link.copy("seqlen_k_ptr", a.seqlen_k_ptr, ours.lengths.seqlen_k, rows);
    const bool other = rows ? place.kv_indptr != nullptr || place.kv_page_indices != nullptr ||
                                  place.kv_last_page_lens != nullptr
                            : place.block_table != nullptr || place.block_table_stride != 0 ||
                                  ours.lengths.seqlen_k != nullptr;
    link.granted("kv_lookup_table", other, false,
                 "the call also has members of the other form of page table");
    const bool slots = place.cache_batch_idx != nullptr || place.is_gappy;
    link.granted("cache_batch_idx or is_gappy", slots, false, "upstream's structure has no such member");
    const LengthArrays& lengths = ours.lengths;
    const bool none = lengths.seqstart_k == nullptr && lengths.seqlen_q == nullptr &&
                      lengths.cu_seqlen_q == nullptr && lengths.cu_seqlen_k == nullptr;
    link.granted("lengths", none, true, "upstream's structure has seqstart_q and the page table only");
    link.copy("seqstart_q_ptr", a.seqstart_q_ptr, ours.lengths.seqstart_q);
}

template <Way way>
void attend(const Link<way>& link, auto& theirs, Signature& s, BatchPrefillArgs& ours,
            const Surroundings& around) {
    auto& [traits, a] = theirs;
    sizes(link, traits, a, s, ours.shape);
    link.copy("skip_min_seqlen_q", traits.skip_min_seqlen_q, s.skip_min_seqlen_q);
    const bool batches = ours.shape.mode == Mode::batch;
    const ElementTypes types = types_of(s, around.arch);
    page_table(link, theirs, ours);
    mask(link, traits, a, s, ours.mask);
    scores(link, traits, a, s, ours.score);
    // No trait of this family asks for static quantisation.
    static_scales(link, a, false, ours.score.scale_o);
    attention_tensors(link, traits, a, s, ours, types, true);
    dropout(link, traits, a, s, ours.dropout, ours.randval, batches, around);

    link.copy("qscale_type", traits.qscale_type, ours.quant.qscale);
    s.qscale = ours.quant.qscale;
    link.clear(a.q_descale_ptr, a.k_descale_ptr, a.v_descale_ptr, a.nblock_stride_kv_block_descale,
               a.nhead_stride_kv_block_descale);
    const bool blocks =
        ours.quant.block_scale_seqstart_q != nullptr || ours.quant.block_scale_seqstart_k != nullptr;
    link.granted("block_scale_seqstart", blocks, false, "upstream's structure has no such member");
    switch (s.qscale) {
    case QScale::no_scale:
        return no_descales(link, ours.quant);
    case QScale::pertensor:
        link.number("q_descale", a.q_descale_ptr, ours.quant.q_descale);
        link.number("k_descale", a.k_descale_ptr, ours.quant.k_descale);
        return link.number("v_descale", a.v_descale_ptr, ours.quant.v_descale);
    case QScale::kv_blockscale: {
        // One pair of strides for both: of pages and of KV heads.
        link.number("q_descale", a.q_descale_ptr, ours.quant.q_descale);
        TensorView& k = ours.quant.k_descale;
        TensorView& v = ours.quant.v_descale;
        link.numbers("k_descale", a.k_descale_ptr, a.nhead_stride_kv_block_descale,
                     a.nblock_stride_kv_block_descale, k, ElementType::fp32, true);
        link.numbers("v_descale", a.v_descale_ptr, a.nhead_stride_kv_block_descale,
                     a.nblock_stride_kv_block_descale, v, ElementType::fp32, true);
        const bool same = k.head_stride == v.head_stride && k.batch_stride == v.batch_stride;
        return link.granted("k_descale", same, true,
                            "upstream has one pair of strides for the descales of K and V");
    }
    default:
        link.refuse(true, "qscale_type", std::string(to_string(s.qscale)),
                    "upstream's structure has no members for such descales of a cache");
    }
}

template <class Args, class Theirs>
Call<Args> cache_to_ours(const Theirs& theirs, const Surroundings& around) {
    Signature s;
    Args ours;
    attend(Link<Way::to_ours>(), theirs, s, ours, around);
    return posed(s, ours, around);
}

template <class Theirs, class Args>
Theirs cache_to_theirs(const Call<Args>& call) {
    Theirs theirs{};
    Call<Args> ours = call;
    attend(Link<Way::to_theirs>(), theirs, ours.problem.signature, ours.args, of_arch(ours.problem.arch));
    return theirs;
}

} // namespace detail

/// The problem and arguments that upstream's traits and arguments pose. Throw UnsupportedInvocation for a call that ours cannot describe.
inline Call<SplitKvArgs> to_ours(const SplitKvCall& theirs, const Surroundings& around) {
    return detail::cache_to_ours<SplitKvArgs>(theirs, around);
}
inline Call<PagedKvArgs> to_ours(const PagedKvCall& theirs, const Surroundings& around) {
    return detail::cache_to_ours<PagedKvArgs>(theirs, around);
}
inline Call<AppendKvArgs> to_ours(const AppendKvCall& theirs, const Surroundings& around) {
    return detail::cache_to_ours<AppendKvArgs>(theirs, around);
}
inline Call<BatchPrefillArgs> to_ours(const BatchPrefillCall& theirs, const Surroundings& around) {
    return detail::cache_to_ours<BatchPrefillArgs>(theirs, around);
}

/// Upstream's traits and arguments for a call of ours. Throw UnsupportedInvocation for a call that upstream cannot describe.
inline SplitKvCall to_theirs(const Call<SplitKvArgs>& call) {
    return detail::cache_to_theirs<SplitKvCall>(call);
}
inline PagedKvCall to_theirs(const Call<PagedKvArgs>& call) {
    return detail::cache_to_theirs<PagedKvCall>(call);
}
inline AppendKvCall to_theirs(const Call<AppendKvArgs>& call) {
    return detail::cache_to_theirs<AppendKvCall>(call);
}
inline BatchPrefillCall to_theirs(const Call<BatchPrefillArgs>& call) {
    return detail::cache_to_theirs<BatchPrefillCall>(call);
}

} // namespace fmha::ck
