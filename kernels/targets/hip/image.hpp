#pragma once

#include "dispatcher/types/element_type.hpp"
#include "kernels/programs/device.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// A tile in LDS: lines of consecutive elements, a multiple of 16 bytes long. Accesses to a column of 4, 8 or 16 bytes
/// fall on different banks because lines are padded by 16, or, where nothing may lie between them, because the units of
/// 16 bytes of a line change places: unit u of line l is where unit u ^ f(l) would be. The padding begins with the line's
/// block scales.
struct Image {
    static constexpr int padding = 16;
    std::int32_t offset = 0, line_bytes = 0, lines = 0;
    /// f(l), in bytes, is (l >> down << up) & mask.
    std::int16_t swizzle_down = 0, swizzle_up = 0, swizzle_mask = 0;

    FMHA_DEVICE constexpr int bytes() const { return line_bytes * lines; }
    FMHA_DEVICE constexpr int scales() const {
        return line_bytes - padding;
    } ///< where they are in a padded line
    FMHA_DEVICE constexpr int swizzle(int line) const {
        return (line >> swizzle_down << swizzle_up) & swizzle_mask;
    }
    /// Where byte `byte` of line `line` lies, and those behind it in its unit.
    FMHA_DEVICE constexpr int at(int line, int byte) const {
        return line * line_bytes + (byte ^ swizzle(line));
    }

    FMHA_DEVICE static constexpr Image padded(int lines, int line_elements, ElementType type) {
        return {0, units(line_elements, type) * 16 + padding, lines};
    }
    /// Without padding. `width` units of a line are accessed together with as many of others as `banks` units have room
    /// for; both are powers of two.
    static constexpr Image swizzled(int lines, int line_elements, ElementType type, int banks, int width) {
        const int all = units(line_elements, type);
        Image image{0, all * 16, lines};
        int period = all & -all;
        if (period > banks) period = banks;
        for (int u = period; u < banks; u *= 2) ++image.swizzle_down;
        image.swizzle_up = 4;
        for (int u = 1; u < width; u *= 2) ++image.swizzle_up;
        if (period > width)
            image.swizzle_mask = static_cast<std::int16_t>((period / width - 1) << image.swizzle_up);
        return image;
    }

  private:
    FMHA_DEVICE static constexpr int units(int elements, ElementType type) {
        return static_cast<int>((element_bytes(type, elements) + 15) / 16);
    }
};

} // namespace fmha::hip_target
