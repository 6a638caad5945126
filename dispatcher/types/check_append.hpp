#pragma once

#include "dispatcher/types/args.hpp"

#include <cstdint>

namespace fmha {

/// Keys that the cache has room for in every entry (V-3): `shape.seqlen_k` where it is contiguous, the pages of a row of the
/// block table otherwise.
constexpr std::int64_t cache_capacity(const AppendKvArgs& args) {
    const KvPlace& place = args.place;
    return place.page_size > 0 ? place.block_table_stride * place.page_size : args.shape.seqlen_k;
}

/// Rules about lengths and tables in host memory: seqlen_k is there and 0 or more (V-1), the new keys fit into the cache
/// (V-3) and its pages exist (P-2), and no two entries append to one place. Entries beyond those that receive a key are not
/// read (P-5). Throws ProblemError with the rule and the argument's name.
void check_append(const AppendKvArgs& args);

} // namespace fmha
