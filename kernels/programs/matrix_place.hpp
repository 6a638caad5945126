#pragma once

#include <cstdint>

namespace fmha::kernels {

/// Which matrix of a tensor a Matrix is, for copies that are told so rather than an address: `first_row` is where a sequence of packed
/// rows begins.
struct MatrixPlace {
    std::int64_t entry = 0, head = 0, first_row = 0;
};

} // namespace fmha::kernels
