#pragma once

#include "reference/attention.hpp"
#include "reference/matrix/features.hpp"

#include <cstdint>

/// Keys and values of a cache, run by run of keys that lie one after another (P-1 to P-6, B-3 to B-5).
namespace fmha::reference::matrix {

/// Whether keys lie elsewhere than one entry after the other.
bool lies_in_cache(const AttentionArgs& args);

/// Sk(b) of a list of pages (B-4).
std::int64_t listed_keys(const KvPlace& place, std::int64_t b);

/// As `load_keys` and `load_values`, descales of 15.2, 15.4 and 15.5 included.
void load_cached_keys(const AttentionArgs& args, const EntryExtent& extent, std::int64_t hk,
                      std::int64_t first, Block out);
void load_cached_values(const AttentionArgs& args, const EntryExtent& extent, std::int64_t hk,
                        std::int64_t first, Block out);

} // namespace fmha::reference::matrix
