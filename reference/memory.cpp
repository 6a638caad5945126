#include "reference/memory.hpp"

#include <algorithm>

namespace fmha::reference {
namespace {

constexpr std::int64_t number = 8, // binary64
    columns = 21; // statistics, companions and indices of a row, its name three times and its place

/// Matrix form, for each thread that has rows: Q and the weighted sums of those of an entry and KV head, a block of K and V with absolute
/// values and squares, and three blocks of scores.
std::int64_t matrix_bytes(const ReferenceExtents& e) {
    constexpr std::int64_t block_rows = 128, block_keys = 512;
    const std::int64_t channels = e.hdim_q + e.hdim_v, threads = std::min<std::int64_t>(e.threads, e.rows);
    return (std::min(e.rows, threads * e.group_rows) * channels +
            threads * 3 * block_keys * (channels + block_rows)) *
           number;
}

} // namespace

std::int64_t reference_bytes(const ReferenceExtents& e) {
    constexpr std::int64_t tables = 6; // O, four companions, O in low precision
    const std::int64_t channels = e.hdim_q + e.hdim_v, threads = e.threads;
    const std::int64_t results = e.results * e.rows * (tables * e.hdim_v + columns) * number;
    // Row by row: K, V and the scored keys of an entry for each thread that has rows.
    constexpr std::int64_t scored_key = 7, fewest_rows = 32;
    const std::int64_t by_row = std::min(threads, (e.rows + fewest_rows - 1) / fewest_rows) * e.seqlen_k *
                                (channels + scored_key) * number;
    return results + std::max(matrix_bytes(e), by_row);
}

std::int64_t value_bytes(const ReferenceExtents& e) {
    return e.rows * (e.hdim_v + columns) * number + matrix_bytes(e);
}

} // namespace fmha::reference
