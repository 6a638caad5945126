#include "reference/memory.hpp"

#include <algorithm>

namespace fmha::reference {

std::int64_t reference_bytes(const ReferenceExtents& e) {
    constexpr std::int64_t number = 8, // binary64
        tables = 6,                    // O, four companions, O in low precision
        columns = 16,                  // statistics, companions and indices of a row, its name twice
        block_rows = 128, block_keys = 512;
    const std::int64_t channels = e.hdim_q + e.hdim_v;
    const std::int64_t results = e.results * e.rows * (tables * e.hdim_v + columns) * number;
    // Matrix form: Q and the weighted sums of the rows, and for each thread a block of K and V with absolute values and
    // squares and three blocks of scores.
    const std::int64_t matrix =
        e.rows * channels * number + e.threads * 3 * block_keys * (channels + block_rows) * number;
    // Row by row: K, V and the scored keys of an entry for each thread.
    constexpr std::int64_t scored_key = 7;
    const std::int64_t by_row = e.threads * e.seqlen_k * (channels + scored_key) * number;
    return results + std::max(matrix, by_row);
}

} // namespace fmha::reference
