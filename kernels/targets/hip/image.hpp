#pragma once

#include "dispatcher/types/element.hpp"
#include "kernels/programs/device.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// A tile in LDS: lines of consecutive elements. Lines are a multiple of 16 bytes and padded by 16, so that
/// column accesses of 4, 8 and 16 bytes fall on different banks. The padding begins with the line's block scales.
struct Image {
    static constexpr int padding = 16;
    std::int32_t offset = 0, line_bytes = 0, lines = 0;

    FMHA_DEVICE constexpr int bytes() const { return line_bytes * lines; }
    FMHA_DEVICE constexpr int scales() const { return line_bytes - padding; } ///< where they are in a line
    FMHA_DEVICE static constexpr Image of(int lines, int line_elements, ElementType type) {
        const auto bytes = static_cast<std::int32_t>(element_bytes(type, line_elements));
        return {0, (bytes + 15) / 16 * 16 + padding, lines};
    }
};

} // namespace fmha::hip_target
