#pragma once

#include "dispatcher/types/args.hpp"

#include <algorithm>
#include <cstdint>

namespace fmha {

/// A mask as kernels get it. They place the ends of a window in 32 bits, so a side beyond 2^30 keys is cut to that, which shows the
/// same keys of entries with fewer than 2^30 rows and keys together (M-1, M-7). Every launch cuts them, and so does whoever reads
/// arguments that the reference gets too.
inline MaskArgs for_kernels(const MaskArgs& mask) {
    constexpr std::int64_t far = std::int64_t{1} << 30;
    return {mask.type, std::clamp(mask.left, -far, far), std::clamp(mask.right, -far, far), mask.sink};
}

} // namespace fmha
