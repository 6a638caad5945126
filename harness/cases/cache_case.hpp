#pragma once

#include "harness/cases/case.hpp"

#include <algorithm>

/// What follows from the cache and append parts of a case.
namespace fmha::harness {

/// Keys that an entry has room for: whole pages of them where there are pages.
inline std::int64_t room_of(const Case& c) {
    const std::int64_t keys =
        c.cache.capacity > 0 ? c.cache.capacity : std::ranges::max(c.seqlen_k) + c.append.seqlen_knew;
    const std::int64_t page = c.cache.page_size;
    return page > 0 ? (keys + page - 1) / page * page : keys;
}

/// Channels that are rotated; 0 without RoPE.
inline std::int64_t rotary_dim_of(const Case& c) {
    if (c.append.rope == Rope::none) return 0;
    return c.append.rotary_dim != 0 ? c.append.rotary_dim : c.hdim_q;
}

} // namespace fmha::harness
