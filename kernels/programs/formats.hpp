#pragma once

#include "dispatcher/types/element_type.hpp"
#include "kernels/programs/device.hpp"

#include <bit>
#include <cstdint>
#include <limits>

/// The kernels' own decoding, encoding and rounding of storage formats (T-1 … T-5, table 2.1). The reference
/// has another one, written differently; the two never meet.
namespace fmha::kernels {

/// Shape of a binary floating-point format of at most 16 bits.
struct Format {
    int mantissa_bits = 0;
    int exponent_bits = 0;
    int bias = 0;
    float largest = 0.0F;
    bool has_infinity = false; ///< an all-ones exponent is reserved, as in IEEE 754
    bool is_fnuz = false;      ///< the code of −0 is the only NaN
    bool saturates = false;    ///< conversions clamp to ±largest (T-5)
};

FMHA_DEVICE constexpr Format format_of(ElementType type) {
    switch (type) {
    case ElementType::fp16:
        return {10, 5, 15, 65504.0F, true, false, false};
    case ElementType::bf16:
        return {7, 8, 127, 0x1.FEp127F, true, false, false};
    case ElementType::fp8_ocp:
        return {3, 4, 7, 448.0F, false, false, true};
    case ElementType::fp8_fnuz:
        return {3, 4, 8, 240.0F, false, true, true};
    case ElementType::bf8_ocp:
        return {2, 5, 15, 57344.0F, true, false, true};
    case ElementType::bf8_fnuz:
        return {2, 5, 16, 57344.0F, false, true, true};
    case ElementType::fp4:
        return {1, 2, 1, 6.0F, false, false, true};
    case ElementType::fp32:
    case ElementType::e8m0:
    case ElementType::uint8:
    case ElementType::int32:
        break;
    }
    return {};
}

/// 2^n for −126 ≤ n ≤ 127.
FMHA_DEVICE constexpr float power_of_two(int n) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23U);
}

/// Value of a code of a format with at most 16 bits.
FMHA_DEVICE constexpr float decode(std::uint32_t code, const Format& format) {
    const auto mantissa_mask = (1U << static_cast<unsigned>(format.mantissa_bits)) - 1U;
    const auto exponent_mask = (1U << static_cast<unsigned>(format.exponent_bits)) - 1U;
    const std::uint32_t mantissa = code & mantissa_mask;
    const std::uint32_t exponent = (code >> static_cast<unsigned>(format.mantissa_bits)) & exponent_mask;
    const bool negative =
        ((code >> static_cast<unsigned>(format.mantissa_bits + format.exponent_bits)) & 1U) != 0;
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();

    if (format.is_fnuz && negative && mantissa == 0 && exponent == 0) return nan;
    if (format.has_infinity && exponent == exponent_mask) {
        if (mantissa != 0) return nan;
        return negative ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
    }
    // e4m3 OCP has no infinities; its only NaN is the all-ones code, just above the largest value.
    const bool ocp_e4m3 = !format.has_infinity && !format.is_fnuz && format.mantissa_bits == 3;
    if (ocp_e4m3 && exponent == exponent_mask && mantissa == mantissa_mask) return nan;

    const int unit = (exponent == 0 ? 1 : static_cast<int>(exponent)) - format.bias - format.mantissa_bits;
    const std::uint32_t digits = exponent == 0 ? mantissa : mantissa | (mantissa_mask + 1U);
    // Two exact factors, because 2^unit of bf16 alone can lie below fp32's normal numbers.
    const float magnitude =
        static_cast<float>(digits) * power_of_two(unit / 2) * power_of_two(unit - unit / 2);
    return negative ? -magnitude : magnitude;
}

/// 2^(code − 127); 0xFF is NaN (table 2.1).
FMHA_DEVICE constexpr float decode_e8m0(std::uint32_t code) {
    if (code == 0xFFU) return std::numeric_limits<float>::quiet_NaN();
    return std::bit_cast<float>(code == 0 ? 0x00400000U : code << 23U);
}

/// x rounded to nearest-even in `format`, still as fp32 (T-5). No branch depends on the data, so a loop over
/// many values vectorises.
FMHA_DEVICE constexpr float round_to(float x, const Format& format) {
    // Adding 1.5·2^23 units of the format's last place leaves exactly the bits that the format keeps.
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t lowest = static_cast<std::uint32_t>(128 - format.bias) << 23U;
    const std::uint32_t top = std::bit_cast<std::uint32_t>(format.largest) & 0x7F800000U;
    std::uint32_t exponent = bits & 0x7F800000U;
    exponent = exponent < lowest ? lowest : exponent;
    exponent = exponent > top ? top : exponent;
    const float pivot = 1.5F * std::bit_cast<float>(
                                   exponent + (static_cast<std::uint32_t>(23 - format.mantissa_bits) << 23U));
    const float clamped = !format.saturates     ? x
                          : x > format.largest  ? format.largest
                          : x < -format.largest ? -format.largest
                                                : x;
    const float rounded = (clamped + pivot) - pivot;
    const float magnitude = rounded < 0.0F ? -rounded : rounded;
    const float limited = magnitude > format.largest ? std::numeric_limits<float>::infinity() : magnitude;
    const auto sign = bits & 0x80000000U;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(limited) | sign);
}

/// bf16 keeps fp32's exponent, so rounding is an addition on the bits.
FMHA_DEVICE constexpr float round_to_bf16(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) & 0xFFFF0000U;
    return x != x ? x : std::bit_cast<float>(rounded);
}

/// x rounded to the storage type, as fp32. fp32 is the identity.
FMHA_DEVICE constexpr float round_to(float x, ElementType type) {
    if (type == ElementType::fp32) return x;
    if (type == ElementType::bf16) return round_to_bf16(x);
    return round_to(x, format_of(type));
}

/// Code of the value nearest to x (T-5): saturating for 8 and 4 bits, infinities for fp16 and bf16.
FMHA_DEVICE constexpr std::uint32_t encode(float x, ElementType type) {
    const std::uint32_t sign = std::bit_cast<std::uint32_t>(x) >> 31U;
    if (type == ElementType::fp32) return std::bit_cast<std::uint32_t>(x);
    if (type == ElementType::bf16) {
        if (x != x) return 0x7FC0U | (sign << 15U);
        return std::bit_cast<std::uint32_t>(round_to_bf16(x)) >> 16U;
    }
    const Format format = format_of(type);
    const auto mantissa_bits = static_cast<unsigned>(format.mantissa_bits);
    const auto sign_shift = static_cast<unsigned>(format.mantissa_bits + format.exponent_bits);
    const std::uint32_t all_ones = (1U << sign_shift) - 1U;
    if (x != x) {
        if (format.is_fnuz) return 1U << sign_shift;
        return all_ones | (sign << sign_shift);
    }
    const float value = round_to(x, format);
    const float magnitude = value < 0.0F ? -value : value;
    if (magnitude > format.largest) return (all_ones - ((1U << mantissa_bits) - 1U)) | (sign << sign_shift);
    if (magnitude == 0.0F) return format.is_fnuz ? 0U : sign << sign_shift;

    const std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude);
    const int exponent = static_cast<int>(bits >> 23U) - 127;
    const int lowest = 1 - format.bias;
    std::uint32_t code = 0;
    if (exponent < lowest)
        code = static_cast<std::uint32_t>(magnitude * power_of_two(format.mantissa_bits - lowest));
    else
        code = (static_cast<std::uint32_t>(exponent + format.bias) << mantissa_bits) |
               ((bits >> (23U - mantissa_bits)) & ((1U << mantissa_bits) - 1U));
    return code | (sign << sign_shift);
}

} // namespace fmha::kernels
