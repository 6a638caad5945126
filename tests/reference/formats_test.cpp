// Every code of every format against formulas that are written here, and rounding in both directions.
#include "reference/matrix/decode.hpp"
#include "reference/numerics/formats.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace fmha::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Table 2.1, spelled per format: fields to value, with the special codes named one by one.
double expected(ElementType type, int code) {
    const auto ieee_like = [code](int exponent_bits, int mantissa_bits, int bias) {
        const int mantissas = 1 << mantissa_bits;
        const int exponent = code / mantissas % (1 << exponent_bits), mantissa = code % mantissas;
        const double sign = code >= mantissas << exponent_bits ? -1.0 : 1.0;
        const double fraction = static_cast<double>(mantissa) / mantissas;
        return exponent == 0 ? sign * fraction * std::pow(2.0, 1 - bias)
                             : sign * (1.0 + fraction) * std::pow(2.0, exponent - bias);
    };
    const int sign_16 = code & 0x8000, magnitude_16 = code & 0x7FFF;
    switch (type) {
    case ElementType::fp16:
        if (magnitude_16 == 0x7C00) return sign_16 != 0 ? -infinity : infinity;
        return magnitude_16 > 0x7C00 ? nan : ieee_like(5, 10, 15);
    case ElementType::bf16:
        if (magnitude_16 == 0x7F80) return sign_16 != 0 ? -infinity : infinity;
        return magnitude_16 > 0x7F80 ? nan : ieee_like(8, 7, 127);
    case ElementType::fp8_ocp:
        return code == 0x7F || code == 0xFF ? nan : ieee_like(4, 3, 7);
    case ElementType::fp8_fnuz:
        return code == 0x80 ? nan : ieee_like(4, 3, 8);
    case ElementType::bf8_ocp:
        if (code == 0x7C) return infinity;
        if (code == 0xFC) return -infinity;
        return (code & 0x7F) > 0x7C ? nan : ieee_like(5, 2, 15);
    case ElementType::bf8_fnuz:
        return code == 0x80 ? nan : ieee_like(5, 2, 16);
    case ElementType::fp4:
        return ieee_like(2, 1, 1);
    case ElementType::e8m0:
        return code == 0xFF ? nan : std::pow(2.0, code - 127);
    case ElementType::uint8:
        return code;
    case ElementType::fp32:
    case ElementType::int32:
        break;
    }
    return nan;
}

int codes(ElementType type) {
    return 1 << element_bits(type);
}

/// The value that the matrix oracle reads from a buffer that holds `code`.
double matrix_decode(ElementType type, std::uint32_t code) {
    TensorView view;
    view.data = &code;
    view.type = type;
    return matrix::decode_element(view, 0, 0, 0, 0);
}

class NarrowFormat : public testing::TestWithParam<ElementType> {};

TEST_P(NarrowFormat, EveryCodeDecodesAsTheTableSays) {
    for (int code = 0; code < codes(GetParam()); ++code) {
        const double value = expected(GetParam(), code);
        const double by_row = decode(GetParam(), static_cast<std::uint32_t>(code));
        const double by_matrix = matrix_decode(GetParam(), static_cast<std::uint32_t>(code));
        if (std::isnan(value)) {
            ASSERT_TRUE(std::isnan(by_row) && std::isnan(by_matrix)) << code;
            continue;
        }
        ASSERT_EQ(std::bit_cast<std::uint64_t>(by_row), std::bit_cast<std::uint64_t>(value)) << code;
        ASSERT_EQ(std::bit_cast<std::uint64_t>(by_matrix), std::bit_cast<std::uint64_t>(value)) << code;
    }
}

INSTANTIATE_TEST_SUITE_P(Decode, NarrowFormat,
                         testing::Values(ElementType::fp16, ElementType::bf16, ElementType::fp8_ocp,
                                         ElementType::fp8_fnuz, ElementType::bf8_ocp, ElementType::bf8_fnuz,
                                         ElementType::fp4, ElementType::e8m0, ElementType::uint8),
                         [](const auto& test) { return std::string(to_string(test.param)); });

class RoundedFormat : public testing::TestWithParam<ElementType> {
  protected:
    /// The non-negative finite codes, which are in the order of their values.
    int finite_codes() const {
        int code = 0;
        while (code < codes(GetParam()) / 2 && std::isfinite(expected(GetParam(), code))) ++code;
        return code;
    }
    double value(int code) const { return expected(GetParam(), code); }
    std::uint32_t sign_bit() const { return static_cast<std::uint32_t>(codes(GetParam()) / 2); }
    bool is_fnuz() const {
        return GetParam() == ElementType::fp8_fnuz || GetParam() == ElementType::bf8_fnuz;
    }
};

TEST_P(RoundedFormat, EveryFiniteCodeSurvives) {
    for (int code = 0, end = finite_codes(); code < end; ++code) {
        ASSERT_EQ(encode(GetParam(), value(code)), static_cast<std::uint32_t>(code));
        if (code == 0 && is_fnuz()) continue;
        ASSERT_EQ(encode(GetParam(), -value(code)), static_cast<std::uint32_t>(code) | sign_bit());
    }
}

TEST_P(RoundedFormat, TakesTheNearestAndTiesToEven) {
    for (int code = 0, end = finite_codes(); code + 1 < end; ++code) {
        const double low = value(code), high = value(code + 1), tie = (low + high) / 2.0;
        const auto lower = static_cast<std::uint32_t>(code), upper = lower + 1;
        ASSERT_EQ(encode(GetParam(), std::nextafter(tie, low)), lower) << code;
        ASSERT_EQ(encode(GetParam(), tie), code % 2 == 0 ? lower : upper) << code;
        ASSERT_EQ(encode(GetParam(), std::nextafter(tie, high)), upper) << code;
        if (code > 0) {
            ASSERT_EQ(encode(GetParam(), std::nextafter(-tie, -high)), upper | sign_bit()) << code;
        }
    }
}

TEST_P(RoundedFormat, OverflowsAsT5Says) {
    const double largest = value(finite_codes() - 1);
    const double step = largest - value(finite_codes() - 2);
    const bool saturates = element_bits(GetParam()) <= 8;
    EXPECT_EQ(largest_finite(GetParam()), largest);
    EXPECT_EQ(round_to(GetParam(), largest + 0.49 * step), largest);
    EXPECT_EQ(round_to(GetParam(), largest + 0.5 * step), saturates ? largest : infinity);
    EXPECT_EQ(round_to(GetParam(), -1e300), saturates ? -largest : -infinity);
    EXPECT_EQ(round_to(GetParam(), infinity), saturates ? largest : infinity);
    if (GetParam() != ElementType::fp4) {
        EXPECT_TRUE(std::isnan(round_to(GetParam(), nan)));
    }
}

TEST_P(RoundedFormat, KnowsItsRoundoffAndFloor) {
    EXPECT_EQ(rounding_floor(GetParam()), value(1) / 2.0);
    const double one = 1.0, next = one + spacing(GetParam(), one);
    EXPECT_EQ(round_to(GetParam(), next), next);
    EXPECT_EQ(unit_roundoff(GetParam()), (next - one) / 2.0);
}

INSTANTIATE_TEST_SUITE_P(Round, RoundedFormat,
                         testing::Values(ElementType::fp16, ElementType::bf16, ElementType::fp8_ocp,
                                         ElementType::fp8_fnuz, ElementType::bf8_ocp, ElementType::bf8_fnuz,
                                         ElementType::fp4),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST(Formats, NegativeZeroExistsExceptInFnuz) {
    EXPECT_EQ(encode(ElementType::fp8_ocp, -0.0), 0x80U);
    EXPECT_EQ(encode(ElementType::fp8_ocp, -1e-9), 0x80U);
    EXPECT_EQ(encode(ElementType::fp8_fnuz, -0.0), 0x00U);
    EXPECT_EQ(encode(ElementType::bf8_fnuz, -1e-9), 0x00U);
}

TEST(Formats, Fp32IsThatOfTheLanguage) {
    std::mt19937_64 engine{7};
    for (int n = 0; n < 200000; ++n) {
        const auto wide = std::bit_cast<double>(engine());
        const auto code = static_cast<std::uint32_t>(engine());
        const float value = std::bit_cast<float>(code);
        if (!std::isnan(wide)) {
            ASSERT_EQ(encode(ElementType::fp32, wide), std::bit_cast<std::uint32_t>(static_cast<float>(wide)))
                << wide;
        }
        if (std::isnan(value)) continue;
        const double exact = value;
        ASSERT_EQ(decode(ElementType::fp32, code), exact);
        ASSERT_EQ(matrix_decode(ElementType::fp32, code), exact);
        // Around fp32's own range, where random doubles seldom fall.
        const double near = exact * (1.0 + 1e-8);
        ASSERT_EQ(encode(ElementType::fp32, near), std::bit_cast<std::uint32_t>(static_cast<float>(near)));
    }
}

TEST(Formats, LimitsAreThoseOfTable21) {
    EXPECT_EQ(largest_finite(ElementType::fp16), 65504.0);
    EXPECT_EQ(largest_finite(ElementType::fp8_ocp), 448.0);
    EXPECT_EQ(largest_finite(ElementType::fp8_fnuz), 240.0);
    EXPECT_EQ(largest_finite(ElementType::bf8_ocp), 57344.0);
    EXPECT_EQ(largest_finite(ElementType::bf8_fnuz), 57344.0);
    EXPECT_EQ(largest_finite(ElementType::fp4), 6.0);
    EXPECT_EQ(rounding_floor(ElementType::fp16), 0x1p-25);
    EXPECT_EQ(rounding_floor(ElementType::bf16), 0x1p-134);
    EXPECT_EQ(rounding_floor(ElementType::fp8_ocp), 0x1p-10);
    EXPECT_EQ(rounding_floor(ElementType::bf8_ocp), 0x1p-17);
    EXPECT_EQ(rounding_floor(ElementType::fp32), 0x1p-150);
}

TEST(Formats, ScalesOfE8m0TakeTheNearestPowerOfTwo) {
    EXPECT_EQ(round_to(ElementType::e8m0, 1.0), 1.0);
    EXPECT_EQ(round_to(ElementType::e8m0, 1.49), 1.0);
    EXPECT_EQ(round_to(ElementType::e8m0, 1.51), 2.0);
    EXPECT_EQ(encode(ElementType::e8m0, 1.5), 128U);
    EXPECT_EQ(encode(ElementType::e8m0, 3.0), 128U);
    EXPECT_EQ(round_to(ElementType::e8m0, 1e300), 0x1p127);
    EXPECT_EQ(round_to(ElementType::e8m0, 0.0), 0x1p-127);
    EXPECT_EQ(encode(ElementType::e8m0, nan), 0xFFU);
}

TEST(Formats, PackedFp4HasItsEvenElementInTheLowNibble) {
    std::uint8_t byte = 0x72; // 6 and 1
    TensorView view{&byte, ElementType::fp4, 0, 0, 2, 1};
    EXPECT_EQ(matrix::decode_element(view, 0, 0, 0, 0), 1.0);
    EXPECT_EQ(matrix::decode_element(view, 0, 0, 0, 1), 6.0);
}

} // namespace
} // namespace fmha::reference
