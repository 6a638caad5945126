#pragma once

#include "dispatcher/types/family_traits.hpp"
#include "harness/cases/case.hpp"

#include <algorithm>
#include <vector>

/// Facts that follow from the cache and append parts of a case.
namespace fmha::harness {

inline bool is_paged(const Case& c) {
    return c.cache.page_size > 0;
}

/// Whether pages are vectors of 16 bytes (B-3).
inline bool is_vectorized(const Case& c) {
    return c.cache.kv_layout == KvLayout::vectorized;
}

/// Whether a list names the pages of all entries (B-4), or a table with a row for each of them does.
inline bool has_page_list(const Case& c) {
    return is_paged(c) && c.cache.kv_lookup == KvLookup::sglang_1d;
}
inline bool has_block_table(const Case& c) {
    return is_paged(c) && !has_page_list(c);
}

/// Pages of a pool that no entry has.
inline constexpr std::int64_t nobodys_pages = 2;

/// Whether keys follow one another without a cache, as those of forward do: packed sequences that are not paged.
inline bool is_packed(const Case& c) {
    return c.mode == Mode::group && !is_paged(c);
}

/// Whether the array seqlen_k says how many keys an entry has.
inline bool has_seqlen_k(const Case& c) {
    return traits_of(c.family).stores_keys || c.length_form_k == LengthForm::seqlen ||
           c.length_form_k == LengthForm::both;
}

/// Keys that an entry has room for: whole pages of them where there are pages.
inline std::int64_t room_of(const Case& c) {
    const std::int64_t added = traits_of(c.family).stores_keys ? c.append.seqlen_knew : 0;
    const std::int64_t keys = c.cache.capacity > 0 ? c.cache.capacity : std::ranges::max(c.seqlen_k) + added;
    const std::int64_t page = c.cache.page_size;
    return page > 0 ? (keys + page - 1) / page * page : keys;
}

/// The extent that a caller states as seqlen_k: the length of every entry, or where an array has the lengths, the room.
inline std::int64_t stated_seqlen_k(const Case& c) {
    return has_seqlen_k(c) ? room_of(c) : std::ranges::max(c.seqlen_k);
}

/// Pages of the pool.
inline std::int64_t pool_pages(const Case& c) {
    return c.batch * room_of(c) / c.cache.page_size + nobodys_pages;
}

/// Whether append-KV stores the last keys of a case before attention reads them.
inline bool appends(const Case& c) {
    return c.chain.appended > 0;
}
/// New keys of an entry.
inline std::int64_t new_keys(const Case& c) {
    return traits_of(c.family).stores_keys ? c.append.seqlen_knew : c.chain.appended;
}
/// Where new keys begin in an entry that is stated to have `seqlen_k`: behind them in a case of append-KV, whose lengths are those
/// before; else they are the last of them.
inline std::int64_t first_new_key(const Case& c, std::int64_t seqlen_k) {
    return seqlen_k - c.chain.appended;
}

/// Query rows [first, first + count) of every entry, which one call computes.
struct RowsOfCall {
    std::int64_t first = 0, count = 0;
};
/// The calls that a case divides its rows into, or the one for its last rows; empty where a call computes all rows.
inline std::vector<RowsOfCall> calls_of(const Case& c) {
    const std::int64_t rows = c.seqlen_q.front();
    if (c.chain.last_rows > 0) return {{rows - c.chain.last_rows, c.chain.last_rows}};
    std::vector<RowsOfCall> calls;
    for (std::int64_t first = 0; c.chain.chunk_rows > 0 && first < rows; first += c.chain.chunk_rows)
        calls.push_back({first, std::min(c.chain.chunk_rows, rows - first)});
    return calls;
}
/// The first query row that is computed.
inline std::int64_t first_row(const Case& c) {
    return c.chain.last_rows > 0 ? calls_of(c).front().first : 0;
}
/// How many rows are computed of an entry that has `rows`.
inline std::int64_t computed_rows(const Case& c, std::int64_t rows) {
    return c.chain.last_rows > 0 ? c.chain.last_rows : rows;
}
/// Numbers of the array `call_lengths`: query rows and then keys of every entry, for each call.
inline std::int64_t call_lengths_count(const Case& c) {
    return 2 * c.batch * static_cast<std::int64_t>(calls_of(c).size());
}
/// Whether each row sees keys up to its own distance from the last one, so that the keys of a call end with those of its last
/// row.
inline bool rows_count_from_last_key(const Case& c) {
    return c.mask == MaskType::bottom_right && c.window_right == 0;
}

/// Whether append-KV rotates queries, and the keys that it stores.
inline bool rotates(const Case& c) {
    return c.append.rope != Rope::none;
}
/// Channels that are rotated; 0 without RoPE.
inline std::int64_t rotary_dim_of(const Case& c) {
    if (!rotates(c)) return 0;
    return c.append.rotary_dim != 0 ? c.append.rotary_dim : c.hdim_q;
}

} // namespace fmha::harness
