#pragma once

#include "dispatcher/types/args.hpp"
#include "kernels/programs/device.hpp"

#include <cstdint>

/// The kernels' look-up of keys in a cache (sections 16 to 19).
namespace fmha::kernels {

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

    /// Reads the table entry of key j, which must exist (P-5).
    FMHA_DEVICE KeyPlace at(std::int64_t j) const {
        const std::int64_t position = first + j;
        if (table == nullptr) return {slot, position};
        // Positions are 32-bit numbers; a division of 64 bits costs a GPU a hundred instructions.
        const auto page = static_cast<std::uint32_t>(position) / static_cast<std::uint32_t>(page_size);
        return {table[page], position - static_cast<std::int64_t>(page) * page_size};
    }
};

} // namespace fmha::kernels
