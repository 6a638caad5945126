#pragma once

#include "dispatcher/types/args.hpp"

#include <cstdint>

namespace fmha::test {

/// A tensor whose strides no other one has.
inline TensorView tensor(std::int64_t which) {
    TensorView view;
    view.batch_stride = 100'000 + which;
    view.head_stride = 7'000 + which;
    view.row_stride = 100 + which;
    return view;
}

} // namespace fmha::test
