#pragma once

#include "dispatcher/types/args/parts.hpp"

#include <cstdint>

namespace fmha {

/// Appends new keys and values to a cache, and rotates them and the queries in place (section 18).
struct AppendKvArgs {
    Shape shape;
    std::int64_t seqlen_knew = 0;
    TensorView q;    ///< in and out; absent = no queries to rotate
    TensorView k, v; ///< the cache, in and out
    TensorView k_new, v_new;
    LengthArrays lengths;  ///< seqlen_k: tokens already in the cache
    bool has_mask = false; ///< decides the positions of query rows (V-5)
    RopeArgs rope;
    KvPlace place;
};

} // namespace fmha
