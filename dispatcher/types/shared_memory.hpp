#pragma once

#include "dispatcher/types/tensor_view.hpp"

#include <cstdint>

namespace fmha {

/// Whether entries or heads of a tensor lie at one place. A tensor map has no stride of 0.
constexpr bool shares_memory(const TensorView& view, std::int64_t entries, std::int64_t heads) {
    return (entries > 1 && view.batch_stride == 0) || (heads > 1 && view.head_stride == 0);
}

} // namespace fmha
