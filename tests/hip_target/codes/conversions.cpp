#include "tests/hip_target/codes/conversions.hpp"

#include "kernels/programs/formats.hpp"
#include "reference/numerics/formats.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

namespace fmha::hip_target::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::uint32_t bits(float x) {
    return std::bit_cast<std::uint32_t>(x);
}

Conversions convert(ElementType type, const std::vector<float>& values,
                    const std::function<float(std::uint32_t)>& decode,
                    const std::function<std::uint32_t(float)>& encode) {
    Conversions all;
    for (std::int64_t code = 0; code < code_count(type); ++code)
        all.decoded.push_back(decode(static_cast<std::uint32_t>(code)));
    for (const float value : values) all.encoded.push_back(encode(value));
    return all;
}

bool is_nan_code(ElementType type, std::uint32_t code) {
    return static_cast<std::int64_t>(code) < code_count(type) && std::isnan(reference::decode(type, code));
}

} // namespace

std::int64_t code_count(ElementType type) {
    return std::int64_t{1} << element_bits(type);
}

std::vector<float> probing_values(ElementType type) {
    std::vector<float> values;
    const auto both_signs = [&](double x) {
        values.push_back(static_cast<float>(x));
        values.push_back(static_cast<float>(-x));
    };
    const auto neighbourhood = [&](double x) {
        const auto middle = static_cast<float>(x);
        for (const float value : {std::nextafter(middle, 0.0F), middle, std::nextafter(middle, infinity)})
            both_signs(value);
    };
    for (std::uint32_t code = 0; code < 0x10000U; ++code)
        values.push_back(static_cast<float>(reference::decode(ElementType::fp16, code)));
    const double largest = reference::largest_finite(type);
    for (std::uint32_t code = 0;; ++code) {
        const double low = reference::decode(type, code), high = reference::decode(type, code + 1);
        neighbourhood(low);
        if (low == largest) break;
        neighbourhood((low + high) / 2);
    }
    neighbourhood(largest + reference::spacing(type, largest) / 2);
    neighbourhood(largest + reference::spacing(type, largest));
    neighbourhood(std::numeric_limits<float>::min());
    using Limits = std::numeric_limits<float>;
    for (const float x : {Limits::denorm_min(), Limits::max(), infinity}) both_signs(x);
    if (type == ElementType::fp4) return values; // it has no NaN, and T-5 says nothing about those of fp32
    both_signs(Limits::quiet_NaN());
    // Not by way of binary64, which would make it quiet.
    for (const std::uint32_t sign : {0U, 0x80000000U})
        values.push_back(std::bit_cast<float>(bits(Limits::signaling_NaN()) | sign));
    return values;
}

Conversions by_reference(ElementType type, const std::vector<float>& values) {
    return convert(
        type, values, [=](std::uint32_t code) { return static_cast<float>(reference::decode(type, code)); },
        [=](float x) { return reference::encode(type, x); });
}

Conversions by_program(ElementType type, const std::vector<float>& values) {
    return convert(
        type, values, [=](std::uint32_t code) { return kernels::decode(code, kernels::format_of(type)); },
        [=](float x) { return kernels::encode(x, type); });
}

Differences compare(ElementType type, const std::vector<float>& values, const Conversions& expected,
                    const Conversions& actual, Range range) {
    Differences found;
    const auto report = [&](const std::string& line) {
        constexpr std::int64_t shown = 8;
        if (++found.count <= shown) found.text += line + "\n";
    };
    if (expected.decoded.size() != actual.decoded.size() ||
        expected.encoded.size() != actual.encoded.size() || values.size() != actual.encoded.size()) {
        report("the tables have different lengths");
        return found;
    }
    for (std::size_t code = 0; code < expected.decoded.size(); ++code) {
        const float want = expected.decoded[code], got = actual.decoded[code];
        if (bits(want) != bits(got) && !(std::isnan(want) && std::isnan(got)))
            report(
                fmt::format("{} code {:#04x} is {} and was decoded as {}", to_string(type), code, want, got));
    }
    const double largest = reference::largest_finite(type);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (range == Range::finite && std::abs(values[i]) > largest) continue;
        const std::uint32_t want = expected.encoded[i], got = actual.encoded[i];
        if (want != got && !(is_nan_code(type, want) && is_nan_code(type, got)))
            report(fmt::format("{} of {} ({:#010x}) is code {:#04x} and was encoded as {:#04x}",
                               to_string(type), values[i], bits(values[i]), want, got));
    }
    return found;
}

} // namespace fmha::hip_target::test
