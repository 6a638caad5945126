#pragma once

#include "kernels/programs/device.hpp"

#include <cstdint>

namespace fmha::kernels {

/// A number by which a kernel divides, with the constants that make that a multiplication: a GPU has no instruction for it. Of numbers below 2^31.
///
/// With 2^(shift − 1) < number ≤ 2^shift and magic = ⌊2^32 · (2^shift − number) / number⌋ + 1, the quotient is
/// ⌊(⌊n · magic / 2^32⌋ + n) / 2^shift⌋ (Granlund, Montgomery, "Division by invariant integers using multiplication", 1994).
struct Divisor {
    std::uint32_t number = 1, magic = 1, shift = 0;

    Divisor() = default;
    /// 0 counts as 1: a launch of nothing divides nothing.
    explicit constexpr Divisor(std::uint32_t by) : number(by > 0 ? by : 1) {
        while ((std::uint64_t{1} << shift) < number) ++shift;
        const std::uint64_t above = (std::uint64_t{1} << shift) - number;
        magic = static_cast<std::uint32_t>((above << 32U) / number + 1);
    }
    FMHA_DEVICE constexpr std::uint32_t quotient(std::uint32_t n) const {
        return (static_cast<std::uint32_t>(std::uint64_t{n} * magic >> 32U) + n) >> shift;
    }
};

} // namespace fmha::kernels
