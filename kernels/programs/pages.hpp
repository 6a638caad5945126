#pragma once

#include "kernels/programs/divisor.hpp"
#include "kernels/programs/matrix.hpp"

#include <cstdint>

/// The kernels' look-up of keys in a cache (sections 16 to 19).
namespace fmha::kernels {

/// Keys [begin, end) of an entry.
struct KeyRange {
    std::int64_t begin = 0, end = 0;
};

/// Where a key lies in the views of K and V: their batch index and their row.
struct KeyPlace {
    std::int64_t page = 0, slot = 0;
};

/// Where the keys of one entry lie: one after another in a slot of the cache (P-6), or in the pages of its part of a table
/// (P-2, B-4, B-5).
struct Pages {
    const std::int32_t* table = nullptr; ///< physical page of every page of the entry; null = not paged
    std::int64_t page_size = 0;          ///< keys a page
    std::int64_t slot = 0;               ///< batch index of keys that are not paged
    std::int64_t first = 0; ///< where key 0 lies: slots from the first one of `slot` or of page 0

    /// `start_k`: where entry b begins among packed keys (Entry), or 0.
    FMHA_DEVICE static Pages of(const KvPlace& place, std::int64_t b, std::int64_t start_k) {
        if (place.kv_page_indices != nullptr)
            return {place.kv_page_indices + place.kv_indptr[b], place.page_size, 0, 0};
        if (place.block_table != nullptr)
            return {place.block_table + b * place.block_table_stride, place.page_size, 0,
                    place.is_gappy ? start_k : 0};
        return {nullptr, 0, place.cache_batch_idx != nullptr ? place.cache_batch_idx[b] : b, start_k};
    }

    /// Lengths of entry b over a cache (P-3, B-4, B-5), and where it begins; `seqstart_k` may be absent. Queries may have
    /// logical lengths in batch prefill only (N-6).
    FMHA_DEVICE static Entry entry_of(const Shape& shape, const LengthArrays& lengths, const KvPlace& place,
                                      std::int64_t b) {
        Entry entry = Entry::of_queries(shape, lengths, b);
        if (lengths.seqlen_q != nullptr) entry.seqlen_q = lengths.seqlen_q[b];
        if (lengths.cu_seqlen_q != nullptr)
            entry.seqlen_q = lengths.cu_seqlen_q[b + 1] - lengths.cu_seqlen_q[b];
        entry.seqlen_k = shape.seqlen_k;
        if (lengths.seqstart_k != nullptr && (shape.mode == Mode::group || place.is_gappy)) {
            entry.start_k = lengths.seqstart_k[b];
            entry.seqlen_k = lengths.seqstart_k[b + 1] - entry.start_k;
        }
        if (lengths.seqlen_k != nullptr) entry.seqlen_k = lengths.seqlen_k[b];
        if (lengths.cu_seqlen_k != nullptr)
            entry.seqlen_k = lengths.cu_seqlen_k[b + 1] - lengths.cu_seqlen_k[b];
        if (place.kv_indptr != nullptr) {
            const std::int64_t pages = place.kv_indptr[b + 1] - place.kv_indptr[b];
            const std::int64_t last = place.kv_last_page_lens != nullptr ? place.kv_last_page_lens[b] : 1;
            entry.seqlen_k = pages > 0 ? (pages - 1) * place.page_size + last : 0;
        }
        return entry;
    }

    /// Reads the table entry of key j, which must exist (P-5).
    FMHA_DEVICE KeyPlace at(std::int64_t j) const {
        const std::int64_t position = first + j;
        if (table == nullptr) return {slot, position};
        // Positions are 32-bit numbers; a division of 64 bits costs a GPU a hundred instructions.
        const auto page = static_cast<std::uint32_t>(position) / static_cast<std::uint32_t>(page_size);
        return {table[page], position - static_cast<std::int64_t>(page) * page_size};
    }
};

/// Pages of a table, whose size the launch has prepared for division. A type of its own, because a branch in `Pages` changes every kernel.
struct PreparedPages : Pages {
    const Divisor& of_page;

    FMHA_DEVICE PreparedPages(const Pages& pages, const Divisor& divisor) : Pages(pages), of_page(divisor) {}
    FMHA_DEVICE KeyPlace at(std::int64_t j) const {
        const auto position = static_cast<std::uint32_t>(first + j), page = of_page.quotient(position);
        return {table[page], position - page * of_page.number};
    }
};

} // namespace fmha::kernels
