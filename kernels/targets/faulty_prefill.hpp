#pragma once

#include "dispatcher/types/enums.hpp"
#include "kernels/programs/fmha_batch_prefill.hpp"

#include <array>
#include <cstdint>
#include <utility>

/// Batch prefill with one known mistake, on every target. For tests that show that the gates can fail; nothing that a user runs
/// includes this. Mistakes in forward's own parts are those of faulty_context.hpp.
namespace fmha::targets {

enum class PrefillFault : std::uint8_t {
    next_page,                ///< the page behind the right one
    first_page_always,        ///< the pages behind the first one are the first one
    last_page_wrong,          ///< the last page of an entry is the previous one
    pages_reversed,           ///< the pages of an entry in the opposite order
    prefix_of_the_neighbour,  ///< the first page is that of the next entry, as if it were shared
    table_ignored,            ///< page n of an entry is page n of the pool
    neighbours_table_row,     ///< the table row or the page list of the next entry
    table_row_stride_short,   ///< rows of the table are one entry too short
    indptr_off_by_one,        ///< the page list begins one entry late
    last_page_length_as_full, ///< the last page counts as if it were full
    last_page_length_less,    ///< the last key does not exist
    last_page_dropped,        ///< the last page does not exist
    length_of_the_neighbour,  ///< the smaller of the lengths of this entry and the next one
    queries_one_row_early,    ///< later entries of the group start one row early
    kv_head_of_the_neighbour, ///< keys and values of the next KV head
    next_slot,                ///< the slot behind the right one
    layout_ignored,           ///< vectors are read as if a slot's channels were consecutive
    key_vector_halved,        ///< column blocks of K are half as wide
    key_block_distance,       ///< column blocks of K are one slot closer together
    value_block_distance,     ///< blocks of slots of V are one channel closer together
    value_as_key,             ///< V is read as K is laid out
    scale_of_the_next_page,   ///< the descale of a page or token is that of the next page
    scale_of_the_first_slot,  ///< the descale of a token is that of the first one of its page
    packed_heads_are_one, ///< heads that share a tile have the query of the first one, and its place in the output
    last_packed_head_missing, ///< the last one of heads that share a tile has no row
};

/// The block context of batch prefill with one decision replaced by a wrong one. It hides members of `Context` and knows nothing of
/// it but the vocabulary of kernels/programs/README.md. All that it reads exists, in a pool with some room behind its last page.
template <class Context>
class FaultyPrefill : public Context {
  public:
    /// `of_context`: the arguments of `Context`.
    template <class... OfContext>
    FMHA_DEVICE explicit FaultyPrefill(PrefillFault fault, OfContext&&... of_context)
        : Context(std::forward<OfContext>(of_context)...), fault_(fault) {}

    FMHA_DEVICE kernels::Entry cached_entry(const Shape& shape, const LengthArrays& lengths,
                                            const KvPlace& place, std::int64_t b) {
        batch_ = shape.batch;
        const auto entry_of = [&](std::int64_t n) { return Context::cached_entry(shape, lengths, place, n); };
        kernels::Entry entry = entry_of(b);
        const std::int64_t keys = entry.seqlen_k, size = place.page_size;
        keys_ = keys;
        neighbours_keys_ = entry_of((b + 1) % batch_).seqlen_k;
        if (is(PrefillFault::last_page_length_as_full)) entry.seqlen_k = (keys + size - 1) / size * size;
        if (is(PrefillFault::last_page_length_less) && keys > 0) --entry.seqlen_k;
        if (is(PrefillFault::last_page_dropped) && keys > 0) entry.seqlen_k = (keys - 1) / size * size;
        if (is(PrefillFault::length_of_the_neighbour) && neighbours_keys_ < keys)
            entry.seqlen_k = neighbours_keys_;
        if (is(PrefillFault::queries_one_row_early) && entry.start_q > 0) --entry.start_q;
        return entry;
    }
    FMHA_DEVICE std::int64_t kv_head(const Shape& shape, std::int64_t h) const {
        const std::int64_t hk = Context::kv_head(shape, h);
        return is(PrefillFault::kv_head_of_the_neighbour) ? (hk + 1) % shape.nhead_k : hk;
    }

    FMHA_DEVICE kernels::Matrix across_heads(const kernels::Matrix& matrix, std::int64_t heads,
                                             std::int64_t distance) const {
        if (is(PrefillFault::last_packed_head_missing))
            return Context::across_heads(matrix, heads - 1, distance);
        return Context::across_heads(matrix, heads, is(PrefillFault::packed_heads_are_one) ? 0 : distance);
    }

    /// The right pages, copied and changed.
    FMHA_DEVICE kernels::Pages cache_pages(const KvPlace& place, std::int64_t b) {
        page_count_ = place.page_count;
        kernels::Pages pages = Context::cache_pages(place, b);
        const std::int64_t own_pages = (keys_ + place.page_size - 1) / place.page_size;
        const std::int64_t others = (neighbours_keys_ + place.page_size - 1) / place.page_size;
        if (own_pages == 0 || own_pages > most_pages) return pages;
        const kernels::Pages neighbour = Context::cache_pages(place, (b + 1) % batch_);
        const bool rows = place.block_table != nullptr;
        for (std::int64_t n = 0; n < own_pages; ++n) {
            std::int32_t& page = own_[n];
            page = pages.table[n];
            switch (fault_) {
            case PrefillFault::next_page:
                page = existing(std::int64_t{page} + 1);
                break;
            case PrefillFault::first_page_always:
                page = pages.table[0];
                break;
            case PrefillFault::last_page_wrong:
                page = pages.table[n + 1 == own_pages && n > 0 ? n - 1 : n];
                break;
            case PrefillFault::pages_reversed:
                page = pages.table[own_pages - 1 - n];
                break;
            case PrefillFault::prefix_of_the_neighbour:
                if (n == 0 && others > 0) page = neighbour.table[0];
                break;
            case PrefillFault::table_ignored:
                page = existing(n);
                break;
            case PrefillFault::neighbours_table_row:
                if (n < others) page = neighbour.table[n];
                break;
            case PrefillFault::table_row_stride_short:
                if (rows) page = existing(place.block_table[b * (place.block_table_stride - 1) + n]);
                break;
            case PrefillFault::indptr_off_by_one:
                if (!rows) page = existing(pages.table[n + 1 < own_pages ? n + 1 : n]);
                break;
            default:
                break;
            }
        }
        // Pages that only a wrong length asks for.
        own_[own_pages] = own_[own_pages - 1];
        pages.table = own_;
        return pages;
    }

    FMHA_DEVICE kernels::Matrix page_layout(kernels::Matrix matrix, KvLayout layout, int vector,
                                            std::int64_t page_size, bool is_value) const {
        kernels::Matrix right = Context::page_layout(matrix, layout, vector, page_size, is_value);
        if (is(PrefillFault::next_slot)) right.origin += right.tensor.row_stride;
        if (layout != KvLayout::vectorized) return right;
        kernels::PagedRows& paged = right.paged;
        if (is(PrefillFault::layout_ignored)) {
            right.tensor.row_stride = matrix.cols.size;
            right.tensor.col_stride = 1;
            paged.vector = 1;
            paged.along_rows = false;
        }
        if (is(PrefillFault::key_vector_halved) && !is_value) {
            paged.vector /= 2;
            right.tensor.row_stride /= 2;
            paged.vector_stride /= 2;
        }
        if (is(PrefillFault::key_block_distance) && !is_value) paged.vector_stride = (page_size - 1) * vector;
        if (is(PrefillFault::value_block_distance) && is_value)
            paged.vector_stride = (matrix.cols.size - 1) * vector;
        if (is(PrefillFault::value_as_key) && is_value)
            return Context::page_layout(matrix, layout, vector, page_size, false);
        return right;
    }
    FMHA_DEVICE kernels::KeyPlace scale_place(const kernels::KeyPlace& place) const {
        if (is(PrefillFault::scale_of_the_next_page)) return {existing(place.page + 1), place.slot};
        if (is(PrefillFault::scale_of_the_first_slot)) return {place.page, 0};
        return Context::scale_place(place);
    }

  private:
    FMHA_DEVICE bool is(PrefillFault fault) const { return fault_ == fault; }
    /// Inside the pool.
    FMHA_DEVICE std::int32_t existing(std::int64_t page) const {
        return static_cast<std::int32_t>((page % page_count_ + page_count_) % page_count_);
    }

    PrefillFault fault_;
    static constexpr std::int64_t most_pages = 31; ///< entries with more keep theirs
    std::int32_t own_[most_pages + 1] = {};
    std::int64_t batch_ = 1, keys_ = 0, neighbours_keys_ = 0, page_count_ = 1;
};

} // namespace fmha::targets

template <>
struct fmha::EnumTable<fmha::targets::PrefillFault> {
    using enum targets::PrefillFault;
    static constexpr std::array<EnumName<targets::PrefillFault>, 25> names{
        {{next_page, "next_page"},
         {first_page_always, "first_page_always"},
         {last_page_wrong, "last_page_wrong"},
         {pages_reversed, "pages_reversed"},
         {prefix_of_the_neighbour, "prefix_of_the_neighbour"},
         {table_ignored, "table_ignored"},
         {neighbours_table_row, "neighbours_table_row"},
         {table_row_stride_short, "table_row_stride_short"},
         {indptr_off_by_one, "indptr_off_by_one"},
         {last_page_length_as_full, "last_page_length_as_full"},
         {last_page_length_less, "last_page_length_less"},
         {last_page_dropped, "last_page_dropped"},
         {length_of_the_neighbour, "length_of_the_neighbour"},
         {queries_one_row_early, "queries_one_row_early"},
         {kv_head_of_the_neighbour, "kv_head_of_the_neighbour"},
         {next_slot, "next_slot"},
         {layout_ignored, "layout_ignored"},
         {key_vector_halved, "key_vector_halved"},
         {key_block_distance, "key_block_distance"},
         {value_block_distance, "value_block_distance"},
         {value_as_key, "value_as_key"},
         {scale_of_the_next_page, "scale_of_the_next_page"},
         {scale_of_the_first_slot, "scale_of_the_first_slot"},
         {packed_heads_are_one, "packed_heads_are_one"},
         {last_packed_head_missing, "last_packed_head_missing"}}};
    static constexpr auto& aliases = no_aliases<targets::PrefillFault>;
};
