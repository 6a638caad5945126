#include "reference/numerics/formats.hpp"

#include "dispatcher/types/error.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

namespace fmha::reference {
namespace {

enum class Specials : std::uint8_t {
    ieee,          ///< top exponent holds infinities and NaN
    top_code,      ///< only S.1111.111 is NaN (e4m3 OCP)
    negative_zero, ///< only 0x80 is NaN and there is no −0 (FNUZ)
    none,          ///< every code is a number (e2m1)
};

/// x · 2^exponent, exactly, for exponents of binary64's normal range; std::ldexp is a call with a loop of special cases.
double scaled(double x, int exponent) {
    return x * std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52U);
}

/// The binary exponent of a positive number of binary64; -1023, which no format here has, where it is subnormal. std::ilogb is a call.
int exponent_of(double x) {
    return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52U) - 1023;
}

/// Sign, exponent and mantissa fields of table 2.1.
struct Format {
    int exponent_bits, mantissa_bits, bias;
    Specials specials;
    bool saturates;

    int smallest_exponent() const { return 1 - bias; }
    int largest_exponent() const {
        const int top = (1 << exponent_bits) - 1;
        return (specials == Specials::ieee ? top - 1 : top) - bias;
    }
    std::uint32_t sign_bit() const { return std::uint32_t{1} << (exponent_bits + mantissa_bits); }
    std::uint32_t exponent_ones() const { return ((1U << exponent_bits) - 1U) << mantissa_bits; }
    double largest() const {
        // e4m3 OCP gives its top mantissa to NaN.
        const int steps = (2 << mantissa_bits) - (specials == Specials::top_code ? 2 : 1);
        return scaled(steps, largest_exponent() - mantissa_bits);
    }
};

Format format_of(ElementType type) {
    switch (type) {
    case ElementType::fp32:
        return {8, 23, 127, Specials::ieee, false};
    case ElementType::fp16:
        return {5, 10, 15, Specials::ieee, false};
    case ElementType::bf16:
        return {8, 7, 127, Specials::ieee, false};
    case ElementType::fp8_ocp:
        return {4, 3, 7, Specials::top_code, true};
    case ElementType::fp8_fnuz:
        return {4, 3, 8, Specials::negative_zero, true};
    case ElementType::bf8_ocp:
        return {5, 2, 15, Specials::ieee, true};
    case ElementType::bf8_fnuz:
        return {5, 2, 16, Specials::negative_zero, true};
    case ElementType::fp4:
        return {2, 1, 1, Specials::none, true};
    case ElementType::e8m0:
    case ElementType::uint8:
    case ElementType::int32:
        break;
    }
    throw Error("element type " + std::string(to_string(type)) + " is not a signed floating-point format");
}

bool is_nan_code(const Format& f, std::uint32_t code) {
    const std::uint32_t magnitude = code & (f.sign_bit() - 1U);
    switch (f.specials) {
    case Specials::ieee:
        return magnitude > f.exponent_ones();
    case Specials::top_code:
        return magnitude == f.sign_bit() - 1U;
    case Specials::negative_zero:
        return code == f.sign_bit();
    case Specials::none:
        break;
    }
    return false;
}

std::uint32_t nan_code(const Format& f) {
    switch (f.specials) {
    case Specials::ieee:
        return f.exponent_ones() | (1U << (f.mantissa_bits - 1));
    case Specials::top_code:
        return f.sign_bit() - 1U;
    case Specials::negative_zero:
        return f.sign_bit();
    case Specials::none:
        break;
    }
    return f.sign_bit() - 1U;
}

/// Binary exponent of the units in which numbers around `magnitude` are counted.
int unit_exponent(const Format& f, double magnitude) {
    const int exponent = magnitude > 0.0 ? exponent_of(magnitude) : f.smallest_exponent();
    return std::max(exponent, f.smallest_exponent()) - f.mantissa_bits;
}

std::uint32_t code_of_magnitude(const Format& f, double magnitude) {
    if (magnitude < scaled(1.0, f.smallest_exponent()))
        return static_cast<std::uint32_t>(scaled(magnitude, f.mantissa_bits - f.smallest_exponent()));
    const int exponent = exponent_of(magnitude);
    const double fraction = scaled(magnitude, -exponent) - 1.0;
    return (static_cast<std::uint32_t>(exponent + f.bias) << f.mantissa_bits) |
           static_cast<std::uint32_t>(scaled(fraction, f.mantissa_bits));
}

std::uint32_t encode_e8m0(double value) {
    if (std::isnan(value)) return 0xFFU;
    if (value <= scaled(1.0, -127)) return 0U;
    if (value >= scaled(1.0, 127)) return 254U;
    const int exponent = exponent_of(value);
    const double fraction = scaled(value, -exponent); // 1 ≤ fraction < 2
    const bool up = fraction > 1.5 || (fraction == 1.5 && (exponent + 127) % 2 != 0);
    return static_cast<std::uint32_t>(exponent + 127 + (up ? 1 : 0));
}

} // namespace

double decode(ElementType type, std::uint32_t code) {
    if (type == ElementType::uint8) return code;
    if (type == ElementType::e8m0)
        return code == 0xFFU ? std::numeric_limits<double>::quiet_NaN()
                             : scaled(1.0, static_cast<int>(code) - 127);
    const Format f = format_of(type);
    if (is_nan_code(f, code)) return std::numeric_limits<double>::quiet_NaN();
    const double sign = (code & f.sign_bit()) != 0U ? -1.0 : 1.0;
    const std::uint32_t magnitude = code & (f.sign_bit() - 1U);
    if (f.specials == Specials::ieee && magnitude == f.exponent_ones())
        return sign * std::numeric_limits<double>::infinity();
    const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
    const double fraction = scaled(magnitude & ((1U << f.mantissa_bits) - 1U), -f.mantissa_bits);
    if (exponent == 0) return sign * scaled(fraction, f.smallest_exponent());
    return sign * scaled(1.0 + fraction, exponent - f.bias);
}

std::uint32_t encode(ElementType type, double value) {
    if (type == ElementType::uint8)
        return static_cast<std::uint32_t>(std::nearbyint(std::clamp(value, 0.0, 255.0)));
    if (type == ElementType::e8m0) return encode_e8m0(value);
    const Format f = format_of(type);
    if (std::isnan(value)) return nan_code(f);
    const std::uint32_t sign = std::signbit(value) ? f.sign_bit() : 0U;
    double magnitude = std::abs(value);
    if (std::isfinite(magnitude)) {
        const int unit = unit_exponent(f, magnitude);
        magnitude = scaled(std::nearbyint(scaled(magnitude, -unit)), unit);
    }
    if (magnitude > f.largest()) {
        if (!f.saturates) return sign | f.exponent_ones();
        magnitude = f.largest();
    }
    const std::uint32_t code = code_of_magnitude(f, magnitude);
    return code == 0U && f.specials == Specials::negative_zero ? 0U : sign | code;
}

double round_to(ElementType type, double value) {
    return decode(type, encode(type, value));
}

double largest_finite(ElementType type) {
    if (type == ElementType::uint8) return 255.0;
    if (type == ElementType::e8m0) return scaled(1.0, 127);
    return format_of(type).largest();
}

double unit_roundoff(ElementType type) {
    return scaled(1.0, -format_of(type).mantissa_bits - 1);
}

double rounding_floor(ElementType type) {
    const Format f = format_of(type);
    return scaled(1.0, f.smallest_exponent() - f.mantissa_bits - 1);
}

double spacing(ElementType type, double value) {
    return scaled(1.0, unit_exponent(format_of(type), std::abs(value)));
}

} // namespace fmha::reference
