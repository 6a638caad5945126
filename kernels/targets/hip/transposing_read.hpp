#pragma once

#include "kernels/targets/hip/instruction.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// A read of LDS that transposes: sixteen lanes share a block of `rows` × 16 elements. Each of them names the place of 64
/// bits, which are consecutive elements of one of the block's rows, and receives one of its columns. Source: AMD's
/// instruction set manual of CDNA 4 (DS_READ_B64_TR_B16, DS_READ_B64_TR_B8).
struct TransposingRead {
    std::int16_t rows = 0;       ///< of a block, and elements of a lane
    Axis source_row, source_col; ///< where in the block the elements lie that a lane names
    Axis row, col;               ///< … and those that it receives
};
inline constexpr int transposing_lanes = 16;

constexpr bool has_transposing_read(MatrixUnit unit, ElementType type) {
    return unit == MatrixUnit::cdna4 && element_bits(type) <= 16;
}

/// For elements of 8 or 16 bits.
constexpr TransposingRead transposing_read(ElementType type) {
    const Axis column{{1, 2, 4, 8}, {}};
    if (element_bits(type) == 16)
        return {4, Axis{{0, 0, 1, 2}, {}}, Axis{{4, 8}, {1, 2}}, Axis{{}, {1, 2}}, column};
    return {8, Axis{{0, 1, 2, 4}, {}}, Axis{{8}, {1, 2, 4}}, Axis{{}, {1, 2, 4}}, column};
}

} // namespace fmha::hip_target
