#pragma once

#include "harness/cases/case.hpp"

#include <cstdint>

/// Which numbers the entries and heads of a case have. A case in reverse order has those of the plain case from the last one on, and so every
/// right kernel leaves the same bits from the last one on (G5.11).
namespace fmha::harness {

/// `c` with its entries and its heads in reverse order, as far as that changes something and no bits follow from their numbers.
Case in_reverse_order(Case c);

inline bool is_reversed(const Case& c) {
    return c.entries_reversed || c.heads_reversed;
}

/// The entry of the plain case whose numbers entry b has, and the other way round.
inline std::int64_t plain_entry(const Case& c, std::int64_t b) {
    return c.entries_reversed ? c.batch - 1 - b : b;
}

/// The same of head h of `heads`: query heads, KV heads, or several partial results of each query head, which stay in order.
std::int64_t plain_head(const Case& c, std::int64_t h, std::int64_t heads);

} // namespace fmha::harness
