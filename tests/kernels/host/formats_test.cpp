// Every code of every narrow format against the formula of table 2.1, and every rounding against its
// neighbours.
#include "kernels/programs/formats.hpp"
#include "kernels/targets/host/convert.hpp"
#include "tests/kernels/host/format_specs.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace fmha::host_target::test {

void PrintTo(const Spec& spec, std::ostream* os) {
    *os << to_string(spec.type);
}

namespace {

class Format : public testing::TestWithParam<Spec> {
  protected:
    std::uint32_t code_count() const {
        return 1U << (1 + GetParam().exponent_bits + GetParam().mantissa_bits);
    }
    bool saturates() const { return element_bits(GetParam().type) <= 8; }
};

TEST_P(Format, EveryCodeDecodesToItsFormula) {
    const auto type = GetParam().type;
    for (std::uint32_t code = 0; code < code_count(); ++code) {
        const double want = value_of(GetParam(), code);
        const float got = kernels::decode(code, kernels::format_of(type));
        if (std::isnan(want))
            EXPECT_TRUE(std::isnan(got)) << code;
        else
            EXPECT_EQ(std::bit_cast<std::uint64_t>(static_cast<double>(got)),
                      std::bit_cast<std::uint64_t>(want))
                << code;
    }
}

/// Formats that outputs are stored in: all but fp4.
class StoredFormat : public Format {};

TEST_P(StoredFormat, EveryCodeSurvivesAStoreAndALoad) {
    const auto type = GetParam().type;
    for (std::uint32_t code = 0; code < code_count(); ++code) {
        const auto bytes = static_cast<std::size_t>(element_bytes(type));
        std::uint8_t stored[2] = {}, again[2] = {};
        std::memcpy(stored, &code, bytes);
        float value = 0;
        read_line(&value, TensorView{stored, type}, 0, 1, 1);
        if (std::isnan(value) || (saturates() && std::isinf(value))) continue; // T-5: no way back to infinity
        write_line(&value, TensorView{again, type}, 0, 1, 1);
        EXPECT_EQ(std::memcmp(stored, again, bytes), 0) << code;
    }
}

TEST_P(Format, RoundingGoesToTheNearestCodeAndTiesToTheEvenOne) {
    const auto type = GetParam().type;
    const Spec& spec = GetParam();
    for (std::uint32_t code = 0;; ++code) {
        const double low = value_of(spec, code), high = value_of(spec, code + 1);
        if (low == spec.largest) break;
        const auto middle = static_cast<float>((low + high) / 2);
        const float below = std::nextafter(middle, -INFINITY), above = std::nextafter(middle, INFINITY);
        for (const float sign : {1.0F, -1.0F}) {
            const bool zero_has_no_sign = spec.fnuz;
            const auto expect = [&](float x, std::uint32_t magnitude) {
                const std::uint32_t sign_bit =
                    sign < 0 && !(zero_has_no_sign && magnitude == 0) ? code_count() / 2 : 0;
                EXPECT_EQ(kernels::encode(sign * x, type), magnitude | sign_bit) << sign * x;
                EXPECT_EQ(std::abs(kernels::round_to(sign * x, type)),
                          static_cast<float>(value_of(spec, magnitude)));
            };
            expect(middle, code % 2 == 0 ? code : code + 1);
            expect(below, code);
            expect(above, code + 1);
        }
    }
}

TEST_P(Format, OverflowSaturatesOrBecomesInfinite) {
    const auto type = GetParam().type;
    const auto largest = static_cast<float>(GetParam().largest);
    const float want = saturates() ? largest : INFINITY;
    for (const float x : {largest * 1.99F, 3e38F, std::numeric_limits<float>::infinity()}) {
        if (x <= largest) continue;
        EXPECT_EQ(kernels::decode(kernels::encode(x, type), kernels::format_of(type)), want) << x;
        EXPECT_EQ(kernels::decode(kernels::encode(-x, type), kernels::format_of(type)), -want) << x;
    }
    if (type != ElementType::fp4) {
        const auto code = kernels::encode(std::nanf(""), type);
        EXPECT_TRUE(std::isnan(kernels::decode(code, kernels::format_of(type))));
    }
}

TEST_P(Format, ALineIsRoundedLikeItsElements) {
    const auto type = GetParam().type;
    std::vector<float> values;
    for (int i = -500; i <= 500; ++i)
        values.push_back(std::ldexp(static_cast<float>(i) * 1.37F, i % 17 - 14));
    std::vector<float> rounded = values;
    round_line(rounded.data(), static_cast<int>(rounded.size()), 2.0F, type);
    for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(rounded[i],
                  kernels::decode(kernels::encode(values[i] * 2.0F, type), kernels::format_of(type)))
            << values[i];
}

INSTANTIATE_TEST_SUITE_P(All, Format, testing::ValuesIn(specs), [](const auto& param_info) {
    return std::string(to_string(param_info.param.type));
});

INSTANTIATE_TEST_SUITE_P(All, StoredFormat, testing::ValuesIn(specs, specs + std::size(specs) - 1),
                         [](const auto& param_info) {
                             return std::string(to_string(param_info.param.type));
                         });

TEST(ScaleFormat, EveryCodeIsAPowerOfTwo) {
    for (std::uint32_t code = 0; code < 255; ++code)
        EXPECT_EQ(kernels::decode_e8m0(code), std::ldexp(1.0, static_cast<int>(code) - 127)) << code;
    EXPECT_TRUE(std::isnan(kernels::decode_e8m0(255)));
}

TEST(PackedFourBits, EvenElementsAreInTheLowNibble) {
    std::uint8_t bytes[] = {0x21, 0x43, 0x65}; // codes 1 2 3 4 5 6
    const TensorView view{bytes, ElementType::fp4};
    float line[6] = {};
    read_line(line, view, 0, 1, 6);
    const float want[] = {0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F};
    for (int i = 0; i < 6; ++i) EXPECT_EQ(line[i], want[i]);
    read_line(line, view, 1, 2, 2);
    EXPECT_EQ(line[0], 1.0F);
    EXPECT_EQ(line[1], 2.0F);
}

TEST(BlockRounding, KeepsTheLargestOfEachRunInsideTheFormat) {
    std::vector<float> values(64);
    for (std::size_t i = 0; i < 64; ++i) values[i] = static_cast<float>(i + 1) / (i < 32 ? 32.0F : 6400.0F);
    std::vector<float> rounded = values;
    round_line_in_blocks(rounded.data(), 64, ElementType::fp4);
    for (std::size_t i = 0; i < 64; ++i) {
        const float largest = i < 32 ? values[31] : values[63];
        // Half a step of the top binade, whose values are at least half as large as the largest.
        EXPECT_LE(std::abs(rounded[i] - values[i]), std::max(values[i] / 4, largest / 12)) << i;
    }
}

} // namespace
} // namespace fmha::host_target::test
