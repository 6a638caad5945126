#pragma once

#include "dispatcher/types/enums.hpp"
#include "kernels/programs/cache.hpp"

#include <array>
#include <cstdint>
#include <utility>

/// Programs over a cache with one known mistake, on every target. For tests that show that the gates can fail; nothing that a
/// user runs includes this. Mistakes in forward's own parts are those of faulty_context.hpp.
namespace fmha::targets {

enum class CacheFault : std::uint8_t {
    next_page,               ///< the page behind the right one
    previous_slot,           ///< the slot before the right one
    page_edge_late,          ///< the first key of a page is looked for behind the last one of the page before
    neighbours_table_row,    ///< the table row, page list or cache slot of another entry
    table_row_stride_short,  ///< rows of the table are one entry too short
    first_page_always,       ///< the pages behind the first one are the first one
    table_ignored,           ///< page n of an entry is page n of the pool
    gappy_start_forgotten,   ///< an entry that begins inside its first page is read from its beginning
    gappy_start_in_its_page, ///< only the slot of a gappy start counts, not its page
    packed_start_added,      ///< seqstart_k is added where the entry is not gappy
    cache_slot_ignored,      ///< entry b is looked for in slot b
    length_one_less,         ///< the last key does not exist
    length_of_the_neighbour, ///< the smaller of the lengths of this entry and the next one
    kv_head_of_the_neighbour, ///< keys and values of the next KV head
    packed_heads_are_one, ///< heads that share a tile have the query of the first one, and its place in the output
    last_packed_head_missing,  ///< the last one of heads that share a tile has no row
    queries_one_row_early,     ///< later entries of a group start one row early
    split_edge_late,           ///< a split begins and ends one key late
    split_edge_twice,          ///< the first key of a split belongs to the previous one too
    split_width_rounded_down,  ///< Sk div n keys a split
    split_of_the_neighbour,    ///< the keys of the next split
    splits_ignored,            ///< every split has all keys
    last_split_dropped,        ///< the last split has no keys
    partials_splits_outermost, ///< partial results of head h and split s go to s · nhead_q + h
    partials_of_the_neighbour, ///< partial results go to the next head
    sink_in_every_split,       ///< the sink logit enters every split
};

/// The block context of a program over a cache with one decision replaced by a wrong one. It hides members of `Context` and
/// knows nothing of it but the vocabulary of kernels/programs/README.md. All that it reads exists.
template <class Context>
class FaultyCache : public Context {
  public:
    /// `of_context`: the arguments of `Context`.
    template <class... OfContext>
    FMHA_DEVICE explicit FaultyCache(CacheFault fault, OfContext&&... of_context)
        : Context(std::forward<OfContext>(of_context)...), fault_(fault) {}

    FMHA_DEVICE kernels::Entry cached_entry(const Shape& shape, const LengthArrays& lengths,
                                            const KvPlace& place, std::int64_t b) {
        place_ = place;
        b_ = b;
        batch_ = shape.batch;
        kernels::Entry entry = Context::cached_entry(shape, lengths, place, b);
        start_k_ = lengths.seqstart_k != nullptr ? lengths.seqstart_k[b] : 0;
        if (is(CacheFault::length_one_less) && entry.seqlen_k > 0) --entry.seqlen_k;
        if (is(CacheFault::length_of_the_neighbour)) {
            const std::int64_t other =
                Context::cached_entry(shape, lengths, place, (b + 1) % batch_).seqlen_k;
            if (other < entry.seqlen_k) entry.seqlen_k = other;
        }
        if (is(CacheFault::queries_one_row_early) && entry.start_q > 0) --entry.start_q;
        return entry;
    }
    FMHA_DEVICE std::int64_t kv_head(const Shape& shape, std::int64_t h) const {
        const std::int64_t hk = Context::kv_head(shape, h);
        return is(CacheFault::kv_head_of_the_neighbour) ? (hk + 1) % shape.nhead_k : hk;
    }

    FMHA_DEVICE kernels::Matrix across_heads(const kernels::Matrix& matrix, std::int64_t heads,
                                             std::int64_t distance) const {
        if (is(CacheFault::last_packed_head_missing))
            return Context::across_heads(matrix, heads - 1, distance);
        return Context::across_heads(matrix, heads, is(CacheFault::packed_heads_are_one) ? 0 : distance);
    }

    FMHA_DEVICE kernels::KeyPlace key_place(const kernels::Pages& pages, std::int64_t j) const {
        const kernels::KeyPlace right = Context::key_place(pages, j);
        switch (fault_) {
        case CacheFault::next_page:
            return existing(right.page + 1, right.slot);
        case CacheFault::previous_slot:
            return existing(right.page, right.slot - 1);
        case CacheFault::page_edge_late:
            // From the first slot, so that a tile does not run over the end of the pool.
            return pages.table != nullptr && right.slot == 0 && j > 0
                       ? kernels::KeyPlace{Context::key_place(pages, j - 1).page, 0}
                       : right;
        case CacheFault::table_ignored:
            return pages.table != nullptr ? existing((pages.first + j) / pages.page_size, right.slot) : right;
        case CacheFault::first_page_always:
            return pages.table != nullptr ? existing(Context::key_place(pages, 0).page, right.slot) : right;
        case CacheFault::neighbours_table_row:
            return through(pages, (b_ + 1) % batch_, pages.first + j, right);
        case CacheFault::table_row_stride_short: {
            if (place_.block_table == nullptr) return right;
            const std::int64_t t = pages.first + j;
            return existing(place_.block_table[b_ * (place_.block_table_stride - 1) + t / pages.page_size],
                            right.slot);
        }
        case CacheFault::gappy_start_forgotten:
            return place_.is_gappy ? through(pages, b_, j, right) : right;
        case CacheFault::gappy_start_in_its_page:
            return place_.is_gappy ? through(pages, b_, pages.first % pages.page_size + j, right) : right;
        case CacheFault::packed_start_added:
            return place_.is_gappy || pages.table == nullptr ? right
                                                             : through(pages, b_, start_k_ + j, right);
        case CacheFault::cache_slot_ignored:
            return place_.cache_batch_idx != nullptr ? kernels::KeyPlace{b_, right.slot} : right;
        default:
            return right;
        }
    }

    FMHA_DEVICE kernels::KeyRange split_keys(const Partials& partials, std::int64_t s,
                                             std::int64_t seqlen_k) const {
        const std::int64_t n = partials.num_splits;
        const kernels::KeyRange right = Context::split_keys(partials, s, seqlen_k);
        const auto late = [&](std::int64_t key) { return key > 0 && key < seqlen_k ? key + 1 : key; };
        switch (fault_) {
        case CacheFault::split_edge_late:
            return {late(right.begin), late(right.end)};
        case CacheFault::split_edge_twice:
            return {right.begin, late(right.end)};
        case CacheFault::split_width_rounded_down: {
            const std::int64_t width = seqlen_k / n;
            return {s * width, s + 1 == n ? seqlen_k : (s + 1) * width};
        }
        case CacheFault::split_of_the_neighbour:
            return Context::split_keys(partials, (s + 1) % n, seqlen_k);
        case CacheFault::splits_ignored:
            return {0, seqlen_k};
        case CacheFault::last_split_dropped:
            return s + 1 == n ? kernels::KeyRange{seqlen_k, seqlen_k} : right;
        default:
            return right;
        }
    }
    FMHA_DEVICE std::int64_t partial_head(const SplitKvArgs& args, std::int64_t h, std::int64_t s) const {
        const std::int64_t heads = args.shape.nhead_q;
        if (is(CacheFault::partials_splits_outermost)) return s * heads + h;
        return Context::partial_head(args, is(CacheFault::partials_of_the_neighbour) ? (h + 1) % heads : h,
                                     s);
    }
    FMHA_DEVICE float partial_sink(float sink) const {
        return is(CacheFault::sink_in_every_split) ? sink : Context::partial_sink(sink);
    }

  private:
    FMHA_DEVICE bool is(CacheFault fault) const { return fault_ == fault; }

    /// Inside the pool.
    FMHA_DEVICE kernels::KeyPlace existing(std::int64_t page, std::int64_t slot) const {
        const std::int64_t pages = place_.page_count;
        return {(page % pages + pages) % pages, slot < 0 ? 0 : slot};
    }
    /// Slot t of the pages of entry b, where its table has it.
    FMHA_DEVICE kernels::KeyPlace through(const kernels::Pages& pages, std::int64_t b, std::int64_t t,
                                          const kernels::KeyPlace& right) const {
        if (place_.cache_batch_idx != nullptr) return {place_.cache_batch_idx[b], right.slot};
        if (place_.block_table == nullptr) return right;
        const std::int64_t n = t / pages.page_size;
        if (n >= place_.block_table_stride) return right;
        return existing(place_.block_table[b * place_.block_table_stride + n], t % pages.page_size);
    }

    CacheFault fault_;
    KvPlace place_;
    std::int64_t b_ = 0, batch_ = 1, start_k_ = 0;
};

} // namespace fmha::targets

template <>
struct fmha::EnumTable<fmha::targets::CacheFault> {
    using enum targets::CacheFault;
    static constexpr std::array<EnumName<targets::CacheFault>, 26> names{
        {{next_page, "next_page"},
         {previous_slot, "previous_slot"},
         {page_edge_late, "page_edge_late"},
         {neighbours_table_row, "neighbours_table_row"},
         {table_row_stride_short, "table_row_stride_short"},
         {first_page_always, "first_page_always"},
         {table_ignored, "table_ignored"},
         {gappy_start_forgotten, "gappy_start_forgotten"},
         {gappy_start_in_its_page, "gappy_start_in_its_page"},
         {packed_start_added, "packed_start_added"},
         {cache_slot_ignored, "cache_slot_ignored"},
         {length_one_less, "length_one_less"},
         {length_of_the_neighbour, "length_of_the_neighbour"},
         {kv_head_of_the_neighbour, "kv_head_of_the_neighbour"},
         {packed_heads_are_one, "packed_heads_are_one"},
         {last_packed_head_missing, "last_packed_head_missing"},
         {queries_one_row_early, "queries_one_row_early"},
         {split_edge_late, "split_edge_late"},
         {split_edge_twice, "split_edge_twice"},
         {split_width_rounded_down, "split_width_rounded_down"},
         {split_of_the_neighbour, "split_of_the_neighbour"},
         {splits_ignored, "splits_ignored"},
         {last_split_dropped, "last_split_dropped"},
         {partials_splits_outermost, "partials_splits_outermost"},
         {partials_of_the_neighbour, "partials_of_the_neighbour"},
         {sink_in_every_split, "sink_in_every_split"}}};
    static constexpr auto& aliases = no_aliases<targets::CacheFault>;
};
