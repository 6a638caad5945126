#pragma once

#include "dispatcher/types/element.hpp"

#include <cstdint>

namespace fmha::reference {

/// The real number that a stored code stands for (semantics 2.1); infinities and NaN where the format has
/// them. `uint8` is its integer, `e8m0` is 2^(code − 127) with 0xFF as NaN.
double decode(ElementType type, std::uint32_t code);

/// The code nearest to `value`, ties to even (T-5). 8- and 4-bit types saturate at the largest finite
/// magnitude, infinities included; fp32, fp16 and bf16 overflow to infinity. NaN gives the format's quiet
/// NaN; fp4, which has none, saturates. FNUZ has no −0. `e8m0` takes the nearest power of two and saturates
/// at both ends.
std::uint32_t encode(ElementType type, double value);

/// decode(type, encode(type, value)).
double round_to(ElementType type, double value);

double largest_finite(ElementType type);
/// u of table 2.1: half an ulp, relative.
double unit_roundoff(ElementType type);
/// Half the smallest subnormal (f_o, f_p of tolerances B.1).
double rounding_floor(ElementType type);
/// Distance between neighbouring values of the type at `value`; the subnormal distance below the normal
/// range.
double spacing(ElementType type, double value);

} // namespace fmha::reference
