#pragma once

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/kernel_instance.hpp"

#include <cstdint>
#include <string>

namespace fmha::test {

/// Extents of calls whose tensors nobody reads.
namespace small_call {

inline constexpr std::int64_t batch = 2, heads = 3, queries = 4, keys = 8, width = 16;

inline Shape shape() {
    return {.batch = batch,
            .nhead_q = heads,
            .nhead_k = heads,
            .seqlen_q = queries,
            .seqlen_k = keys,
            .max_seqlen_q = queries,
            .hdim_q = width,
            .hdim_v = width};
}

inline TensorView dense(void* data, std::int64_t rows, std::int64_t columns) {
    return {data, ElementType::fp16, heads * rows * columns, rows * columns, columns, 1};
}

} // namespace small_call

/// "OK", or the sentence that `check` throws.
template <class Check>
std::string told_by(const Check& check) {
    try {
        check();
        return "OK";
    } catch (const Error& error) {
        return error.what();
    }
}

} // namespace fmha::test
