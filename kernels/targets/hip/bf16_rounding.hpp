#pragma once

#include "kernels/programs/device.hpp"

#include <bit>
#include <cstdint>

namespace fmha::hip_target {

/// The bits of x with the upper half rounded to nearest-even, which is bf16 (T-5), for units without that conversion; the lower half
/// means nothing. One more than half of the lower half is added where the upper half is odd, half otherwise less one: a carry
/// arises exactly where rounding goes up. A carry out of the mantissa gives the next binade, and beyond the largest number
/// infinity; infinity itself takes none. So numbers need no branch and no test, and weights, exp2 of differences to a maximum,
/// are numbers wherever scores are. A NaN stays one unless all bits of its upper half are ones, and arithmetic makes 0x7FC00000.
FMHA_DEVICE constexpr std::uint32_t round_upper_half(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return bits + 0x7FFFU + (bits >> 16U & 1U);
}

} // namespace fmha::hip_target
