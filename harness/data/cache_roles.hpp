#pragma once

#include "dispatcher/types/family_traits.hpp"
#include "harness/cases/cache_case.hpp"
#include "harness/data/append_tensors.hpp"
#include "harness/data/attention_roles.hpp"
#include "harness/data/cache_places.hpp"

#include <array>

/// Lines of the tables that the families with a cache share: K and V where the cache has them, its tables, its lengths.
namespace fmha::harness::roles {

/// K or V in slots or pages (P-1), or packed as forward has them.
TensorLayout layout_cached_k(const Case& c, const Geometry& g);
TensorLayout layout_cached_v(const Case& c, const Geometry& g);
/// Every key of every entry, where it lies.
void fill_cached_k(const DataSource& source, GuardedTensor& tensor);
void fill_cached_v(const DataSource& source, GuardedTensor& tensor);
void rows_of_cached_k(const DataSource& source, const RowVisit& visit);
void rows_of_cached_v(const DataSource& source, const RowVisit& visit);

/// Keys of an entry as the family leaves them: those of append-KV have the new ones besides.
std::int64_t cached_keys(const DataSource& source, std::int64_t b);

/// Entries of the table that hold a key; the others may not be read (P-5) and stay poison.
TensorLayout layout_block_table(const Case& c, const Geometry& g);
void fill_block_table(const DataSource& source, GuardedTensor& tensor);
void rows_of_block_table(const DataSource& source, const RowVisit& visit);

TensorLayout layout_entries(const Case& c, const Geometry& g);
void rows_of_entries(const DataSource& source, const RowVisit& visit);
void fill_cache_batch_idx(const DataSource& source, GuardedTensor& tensor);
void fill_seqlen_k(const DataSource& source, GuardedTensor& tensor);

/// Keys that an entry has before append-KV adds the last ones.
void fill_cached_lengths(const DataSource& source, GuardedTensor& tensor);
/// Of each call of `calls_of` one after another: query rows of every entry, then keys.
TensorLayout layout_call_lengths(const Case& c, const Geometry& g);
void fill_call_lengths(const DataSource& source, GuardedTensor& tensor);
void rows_of_call_lengths(const DataSource& source, const RowVisit& visit);

/// Offsets, one more than entries: of packed queries or keys, or of the first keys in the pages (P-2).
TensorLayout layout_starts(const Case& c, const Geometry& g);
void rows_of_starts(const DataSource& source, const RowVisit& visit);
void fill_seqstart_q(const DataSource& source, GuardedTensor& tensor);
void fill_seqstart_k(const DataSource& source, GuardedTensor& tensor);

/// The list of the pages of all entries (B-4); what stands before the first and behind the last one stays poison, and so does the
/// last page's length of an entry without pages.
TensorLayout layout_kv_page_indices(const Case& c, const Geometry& g);
void fill_kv_page_indices(const DataSource& source, GuardedTensor& tensor);
void rows_of_kv_page_indices(const DataSource& source, const RowVisit& visit);
void fill_kv_indptr(const DataSource& source, GuardedTensor& tensor);
void fill_kv_last_page_lens(const DataSource& source, GuardedTensor& tensor);
void rows_of_kv_last_page_lens(const DataSource& source, const RowVisit& visit);

inline const std::int32_t* array_of(const GuardedTensor& tensor) {
    return static_cast<const std::int32_t*>(tensor.view().data);
}

/// The numbers of the place that are no arrays.
void bind_place(const Case& c, KvPlace& place);

/// The arguments beside tensors of families that attend over a cache.
template <class Args>
void bind_attention(const DataSource& source, Args& args) {
    args.shape = shape_args(source);
    args.shape.seqlen_k = stated_seqlen_k(source.c);
    args.mask = mask_args(source.c);
    args.score = score_args(source.c);
    args.quant.qscale = source.c.qscale;
    bind_place(source.c, args.place);
}

template <class Args>
constexpr Role<Args> block_table_role{
    "block_table",
    Flow::in,
    has_block_table,
    layout_block_table,
    fill_block_table,
    rows_of_block_table,
    [](Args& args, const GuardedTensor& tensor) { args.place.block_table = array_of(tensor); }};

template <class Args>
constexpr std::array<Role<Args>, 2> table_roles{{
    block_table_role<Args>,
    {"cache_batch_idx", Flow::in, [](const Case& c) { return c.cache.cache_batch_idx; }, layout_entries,
     fill_cache_batch_idx, rows_of_entries,
     [](Args& args, const GuardedTensor& tensor) { args.place.cache_batch_idx = array_of(tensor); }},
}};

/// Q, K, V and what scores are made of, where `attends` says that the case computes scores; sink logits, which combining reads
/// too, and offsets of queries in any case.
template <class Args, bool (*attends)(const Case&)>
constexpr std::array<Role<Args>, 13> attention_roles{{
    {"q", Flow::in, [](const Case& c) { return attends(c) && !rotates(c); }, layout_q, fill_q, rows_of_q,
     [](Args& args, const GuardedTensor& tensor) { args.q = tensor.view(); }},
    {"k", Flow::in, [](const Case& c) { return attends(c) && !appends(c); }, layout_cached_k, fill_cached_k,
     rows_of_cached_k, [](Args& args, const GuardedTensor& tensor) { args.k = tensor.view(); }},
    {"v", Flow::in, [](const Case& c) { return attends(c) && !appends(c); }, layout_cached_v, fill_cached_v,
     rows_of_cached_v, [](Args& args, const GuardedTensor& tensor) { args.v = tensor.view(); }},
    {"bias", Flow::in, [](const Case& c) { return attends(c) && c.bias == BiasType::elementwise; },
     layout_bias, fill_bias, rows_of_bias,
     [](Args& args, const GuardedTensor& tensor) { args.bias = tensor.view(); }},
    {"q_descale", Flow::in, [](const Case& c) { return attends(c) && c.qscale == QScale::pertensor; },
     layout_q_descale, fill_q_descale, rows_of_q_descale,
     [](Args& args, const GuardedTensor& tensor) { args.quant.q_descale = tensor.view(); }},
    {"k_descale", Flow::in, [](const Case& c) { return attends(c) && c.qscale == QScale::pertensor; },
     layout_k_descale, fill_k_descale, rows_of_k_descale,
     [](Args& args, const GuardedTensor& tensor) { args.quant.k_descale = tensor.view(); }},
    {"v_descale", Flow::in, [](const Case& c) { return attends(c) && c.qscale == QScale::pertensor; },
     layout_v_descale, fill_v_descale, rows_of_v_descale,
     [](Args& args, const GuardedTensor& tensor) { args.quant.v_descale = tensor.view(); }},
    {"alibi_slopes", Flow::in, [](const Case& c) { return attends(c) && c.bias == BiasType::alibi; },
     layout_alibi_slopes, fill_alibi_slopes, rows_of_alibi_slopes,
     [](Args& args, const GuardedTensor& tensor) {
         args.score.alibi_slopes = static_cast<const float*>(tensor.view().data);
     }},
    {"seqstart_q", Flow::in, is_group, layout_starts, fill_seqstart_q, rows_of_starts,
     [](Args& args, const GuardedTensor& tensor) { args.lengths.seqstart_q = array_of(tensor); }, false},
    {"sink_logits", Flow::in, [](const Case& c) { return c.sink_logits != SinkLogits::none; },
     layout_sink_logits, fill_sink_logits, rows_of_sink_logits,
     [](Args& args, const GuardedTensor& tensor) {
         args.score.sink_logit = static_cast<const float*>(tensor.view().data);
     }},
    // Pages need no offsets where an array has the lengths (P-3).
    {"seqstart_k", Flow::in,
     [](const Case& c) {
         const bool pages_say = is_paged(c) && (has_seqlen_k(c) || traits_of(c.family).lists_pages);
         return attends(c) && !c.cache.gappy && is_group(c) && !pages_say;
     },
     layout_starts, fill_seqstart_k, rows_of_starts,
     [](Args& args, const GuardedTensor& tensor) { args.lengths.seqstart_k = array_of(tensor); }, false},
    // Gaps follow from no length.
    {"seqstart_k", Flow::in, [](const Case& c) { return attends(c) && c.cache.gappy; }, layout_starts,
     fill_seqstart_k, rows_of_starts,
     [](Args& args, const GuardedTensor& tensor) { args.lengths.seqstart_k = array_of(tensor); }},
    {"seqlen_k", Flow::in, [](const Case& c) { return attends(c) && has_seqlen_k(c); }, layout_entries,
     fill_seqlen_k, rows_of_entries,
     [](Args& args, const GuardedTensor& tensor) { args.lengths.seqlen_k = array_of(tensor); }, false},
}};

/// The further tensors of a chain: a cache that append-KV adds keys to, queries that it rotates and the tables for that, the new keys, and the
/// lengths of calls. Only cache and queries are arguments of attention by themselves.
template <class Args>
constexpr std::array<Role<Args>, 9> chain_roles{{
    {"q", Flow::in_out, rotates, layout_q, fill_q, rotated_rows_of_q,
     [](Args& args, const GuardedTensor& tensor) { args.q = tensor.view(); }},
    {"cos", Flow::in, rotates, layout_angles, fill_angles<false>, rows_of_angles,
     [](Args&, const GuardedTensor&) {}},
    {"sin", Flow::in, rotates, layout_angles, fill_angles<true>, rows_of_angles,
     [](Args&, const GuardedTensor&) {}},
    {"k", Flow::in_out, appends, layout_cached_k, fill_cached_k, rows_of_appended<false>,
     [](Args& args, const GuardedTensor& tensor) { args.k = tensor.view(); }},
    {"v", Flow::in_out, appends, layout_cached_v, fill_cached_v, rows_of_appended<true>,
     [](Args& args, const GuardedTensor& tensor) { args.v = tensor.view(); }},
    {"k_new", Flow::in, appends, layout_new<false>, fill_new<false>, rows_of_new<false>,
     [](Args&, const GuardedTensor&) {}},
    {"v_new", Flow::in, appends, layout_new<true>, fill_new<true>, rows_of_new<true>,
     [](Args&, const GuardedTensor&) {}},
    {"cached_lengths", Flow::in, appends, layout_entries, fill_cached_lengths, rows_of_entries,
     [](Args&, const GuardedTensor&) {}, false},
    {"call_lengths", Flow::in, [](const Case& c) { return !calls_of(c).empty(); }, layout_call_lengths,
     fill_call_lengths, rows_of_call_lengths, [](Args&, const GuardedTensor&) {}, false},
}};

} // namespace fmha::harness::roles
