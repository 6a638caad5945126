// The unit in which maxima of carried weights are: logits so large that a factor makes a difference are in no case.

#include "kernels/programs/score_unit.hpp"
#include "tests/mutation/checks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fmha::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// The smallest power of two that is not below `x`.
float power_above(float x) {
    int exponent = 0;
    const float mantissa = std::frexp(x, &exponent);
    return std::ldexp(1.0F, mantissa == 0.5F ? exponent - 1 : exponent);
}

bool is_right(float in_logits, float shift, float logits) {
    const auto unit = kernels::ScoreUnit::of(in_logits, shift, logits);
    const float power = power_above(in_logits), from = logits / power;
    if (unit.in_logits != in_logits || unit.shift != shift || unit.power != power || unit.power_from != from)
        return false;
    const auto factor_is = [&](float top, float factor) {
        return std::ranges::all_of(std::initializer_list<float>{top, -top}, [&](float t) {
            return unit.factor(t) == factor &&
                   unit.reference(t) == std::min(std::fma(-t, factor, shift), 0x1p127F);
        });
    };
    return factor_is(0.0F, in_logits) && factor_is(std::nextafter(from, 0.0F), in_logits) &&
           factor_is(from, power) && factor_is(std::nextafter(from, infinity), power) &&
           unit.reference(-infinity) == 0x1p127F;
}

} // namespace

bool score_units_are_right() {
    const kernels::ScoreUnit none;
    if (none.in_logits != 1.0F || none.power != 1.0F || none.factor(0x1p100F) != 1.0F) return false;
    for (const float shift : {0.0F, 5.0F})
        // Small bounds too, of which a neighbour is another number of fp32.
        for (const float logits : {4.0F, 0x1p19F, 0x1p26F})
            for (const float in_logits : {1.0F, 0.5F, 0.18033688F, 1.442695F, 3.0F,
                                          std::nextafter(1.0F, 2.0F), std::nextafter(1.0F, 0.0F), 0x1.8p-20F})
                if (!is_right(in_logits, shift, logits)) return false;
    return true;
}

} // namespace fmha::test
