#pragma once

#include <cstdint>

namespace fmha::reference {

/// The extents that the memory of a reference depends on.
struct ReferenceExtents {
    std::int64_t rows = 0;       ///< that are asked for
    std::int64_t group_rows = 0; ///< of the entry and KV head that has most of them
    std::int64_t results = 1;    ///< of such rows that are held together, computed one after the other
    std::int64_t seqlen_k = 0;   ///< of the longest entry
    std::int64_t hdim_q = 0, hdim_v = 0;
    int threads = 1;
};

/// Bytes that results with companions, the table of the low-precision pass beside each, and the work of either oracle take
/// at most; some more when the rows are asked for out of order.
std::int64_t reference_bytes(const ReferenceExtents& extents);

/// Bytes that one result without companions and the work of the matrix oracle take at most.
std::int64_t value_bytes(const ReferenceExtents& extents);

} // namespace fmha::reference
