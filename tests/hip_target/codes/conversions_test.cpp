// The kernels' conversions on the host against the reference's, value by value, and whether the comparison can fail.

#include "tests/hip_target/codes/conversions.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>

namespace fmha::hip_target::test {
namespace {

using testing::HasSubstr;
using enum ElementType;

class HostCodes : public testing::TestWithParam<ElementType> {
  protected:
    const ElementType type = GetParam();
    const std::vector<float> values = probing_values(type);
    const Conversions reference = by_reference(type, values);
};

TEST_P(HostCodes, OfTheKernelsAreThoseOfTheReference) {
    const Differences found = compare(type, values, reference, by_program(type, values));
    EXPECT_EQ(found.count, 0) << found.text;
}

TEST_P(HostCodes, OneChangedEntryIsNoticed) {
    for (std::size_t code = 0; code < reference.decoded.size(); code += code < 256 ? 1 : 255) {
        Conversions changed = reference;
        float& entry = changed.decoded[code];
        entry = std::isnan(entry) ? 0.0F : std::bit_cast<float>(std::bit_cast<std::uint32_t>(entry) ^ 1U);
        const Differences found = compare(type, values, reference, changed);
        ASSERT_EQ(found.count, 1) << code;
        ASSERT_THAT(found.text, HasSubstr("was decoded as"));
    }
    for (std::size_t i = 0; i < values.size(); i += values.size() / 97) {
        Conversions changed = reference;
        // The neighbour of a NaN can be a NaN; zero is none.
        changed.encoded[i] = std::isnan(values[i]) ? 0U : changed.encoded[i] ^ 1U;
        const Differences found = compare(type, values, reference, changed);
        ASSERT_EQ(found.count, 1) << values[i];
        ASSERT_THAT(found.text, HasSubstr("was encoded as"));
    }
}

TEST_P(HostCodes, AMissingEntryIsNoticed) {
    Conversions shorter = reference;
    shorter.encoded.pop_back();
    EXPECT_EQ(compare(type, values, reference, shorter).count, 1);
}

INSTANTIATE_TEST_SUITE_P(Formats, HostCodes,
                         testing::Values(fp16, bf16, fp8_ocp, fp8_fnuz, bf8_ocp, bf8_fnuz, fp4),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST(CodeComparison, TakesOneNaNForAnotherAndNoOtherCode) {
    const std::vector<float> values{std::nanf(""), 1e9F};
    const Conversions expected = by_reference(bf8_ocp, values);
    Conversions other = expected;
    other.encoded[0] = 0xFDU;
    EXPECT_EQ(compare(bf8_ocp, values, expected, other).count, 0);
    other.encoded[0] = 0x7CU; // infinity
    EXPECT_EQ(compare(bf8_ocp, values, expected, other).count, 1);
}

TEST(CodeComparison, LeavesOverflowOutOnlyWhenToldTo) {
    const std::vector<float> values{1.0F, 449.0F};
    const Conversions expected = by_reference(fp8_ocp, values);
    Conversions unsaturated = expected;
    unsaturated.encoded[1] = 0x7FU;
    EXPECT_EQ(compare(fp8_ocp, values, expected, unsaturated).count, 1);
    EXPECT_EQ(compare(fp8_ocp, values, expected, unsaturated, Range::finite).count, 0);
    unsaturated.encoded[0] ^= 1U;
    EXPECT_EQ(compare(fp8_ocp, values, expected, unsaturated, Range::finite).count, 1);
}

} // namespace
} // namespace fmha::hip_target::test
