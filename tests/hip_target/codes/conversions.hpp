#pragma once

#include "dispatcher/types/element.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// What conversions between fp32 and a narrow format give, as data that can be compared whoever converted.
namespace fmha::hip_target::test {

struct Conversions {
    std::vector<float> decoded;         ///< of every code
    std::vector<std::uint32_t> encoded; ///< of every probing value
};

/// Number of codes of a format: 16, 256 or 65,536.
std::int64_t code_count(ElementType type);

/// Values whose conversion is telling: all of fp16's; the neighbourhood of every halfway point between two neighbouring codes
/// of the format and of the one beyond its largest value; ±largest and its neighbours; what lies far outside; infinities; NaN where the format
/// has one.
std::vector<float> probing_values(ElementType type);

Conversions by_reference(ElementType type, const std::vector<float>& values);
/// The kernels' functions, compiled for the host.
Conversions by_program(ElementType type, const std::vector<float>& values);

/// Which conversions of values to codes are compared.
enum class Range : std::uint8_t {
    all,
    finite, ///< NaN, and what does not exceed the format's largest value: instructions that do not saturate by themselves
};

struct Differences {
    std::int64_t count = 0;
    std::string text; ///< the first few, one line each
};

/// Where `actual` differs from `expected`. Values are compared by their bits, −0 is not 0; two NaN, of whatever sign and
/// payload, are the same (T-5 says that NaN stays NaN and no more). A table of another length differs wholly.
Differences compare(ElementType type, const std::vector<float>& values, const Conversions& expected,
                    const Conversions& actual, Range range = Range::all);

} // namespace fmha::hip_target::test
