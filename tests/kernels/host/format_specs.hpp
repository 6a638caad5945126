#pragma once

#include "dispatcher/types/element.hpp"

#include <cmath>
#include <cstdint>

/// The small floating-point formats of table 2.1, written down once more for tests.
namespace fmha::host_target::test {

struct Spec {
    ElementType type;
    int exponent_bits, mantissa_bits, bias;
    bool ieee; ///< infinities and NaNs in the top binade
    bool fnuz; ///< the code of −0 is the only NaN
    double largest;
};
inline constexpr Spec specs[] = {{ElementType::fp16, 5, 10, 15, true, false, 65504},
                                 {ElementType::bf16, 8, 7, 127, true, false, 0x1.FEp127},
                                 {ElementType::fp8_ocp, 4, 3, 7, false, false, 448},
                                 {ElementType::fp8_fnuz, 4, 3, 8, false, true, 240},
                                 {ElementType::bf8_ocp, 5, 2, 15, true, false, 57344},
                                 {ElementType::bf8_fnuz, 5, 2, 16, false, true, 57344},
                                 {ElementType::fp4, 2, 1, 1, false, false, 6}};

/// What a code means.
inline double value_of(const Spec& spec, std::uint32_t code) {
    const int bits = 1 + spec.exponent_bits + spec.mantissa_bits;
    const double sign = (code >> (bits - 1)) != 0 ? -1.0 : 1.0;
    const auto exponent = static_cast<int>((code >> spec.mantissa_bits) & ((1U << spec.exponent_bits) - 1));
    const auto mantissa = static_cast<int>(code & ((1U << spec.mantissa_bits) - 1));
    const int top = (1 << spec.exponent_bits) - 1, ones = (1 << spec.mantissa_bits) - 1;
    if (spec.fnuz && sign < 0 && exponent == 0 && mantissa == 0) return std::nan("");
    if (spec.ieee && exponent == top) return mantissa == 0 ? sign * INFINITY : std::nan("");
    if (spec.type == ElementType::fp8_ocp && exponent == top && mantissa == ones) return std::nan("");
    const double fraction = std::ldexp(mantissa, -spec.mantissa_bits);
    return exponent == 0 ? sign * std::ldexp(fraction, 1 - spec.bias)
                         : sign * std::ldexp(1.0 + fraction, exponent - spec.bias);
}

} // namespace fmha::host_target::test
