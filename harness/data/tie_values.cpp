#include "harness/data/tie_values.hpp"

#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <cmath>

namespace fmha::harness {
namespace {

/// Largest power of two of a channel of K: exact in every type.
constexpr int step = 4;

std::uint64_t index_of(std::int64_t c, std::uint64_t draw) {
    return 4 * static_cast<std::uint64_t>(c) + draw;
}

/// Bits of the mantissa, the leading one included.
int significant_bits(ElementType type) {
    return -std::ilogb(reference::unit_roundoff(type));
}

double signed_like(const Random& random, std::int64_t c, double magnitude) {
    return (random.bits(index_of(c, 3)) & 1U) != 0 ? -magnitude : magnitude;
}

/// 1, or another number below 2 on the type's grid.
double mantissa(const Random& random, std::int64_t c, ElementType type) {
    const std::int64_t steps = std::int64_t{1} << (significant_bits(type) - 1);
    return 1.0 +
           static_cast<double>(random.integer(index_of(c, 0), 0, steps - 2)) / static_cast<double>(steps);
}

} // namespace

double tied_value(const Random& random, std::int64_t j, std::int64_t c, ElementType v, ElementType o) {
    // The sum of both has one bit more than `o` keeps, in the binade of the larger.
    const auto exponent = static_cast<int>(random.integer(index_of(c, 1), 0, 2));
    const auto odd = static_cast<double>(2 * random.integer(index_of(c, 2), 0, 1) + 1);
    const double magnitude = j % 2 == 0 ? std::ldexp(mantissa(random, c, v), exponent)
                                        : std::ldexp(odd, exponent - significant_bits(o));
    return signed_like(random, c, magnitude);
}

int tie_weight_exponent(ElementType p) {
    if (p == ElementType::fp32 || p == ElementType::bf16) return 0;
    const int shift = p == ElementType::fp8_ocp ? 8 : p == ElementType::fp8_fnuz ? 7 : 0;
    return shift - std::ilogb(reference::rounding_floor(p));
}

double weight_tie_query(int exponent, std::int64_t c) {
    return c * step < exponent ? 1.0 : 0.0;
}

double weight_tie_key(int exponent, std::int64_t j, std::int64_t c) {
    if (has_weight_one(j)) return 0.0;
    return -static_cast<double>(std::clamp<std::int64_t>(exponent - c * step, 0, step));
}

double weight_tie_value(const Random& random, std::int64_t j, std::int64_t c, ElementType v) {
    if (has_weight_one(j)) return signed_like(random, c, std::ldexp(mantissa(random, c, v), -6));
    const bool narrow_range = v == ElementType::fp8_ocp || v == ElementType::fp8_fnuz;
    return signed_like(random, c, narrow_range ? 0x1p7 : 0x1p14);
}

} // namespace fmha::harness
