// Every code of the small formats, at run time: the host decodes by tables that the compiler makes, before any mutant is on.

#include "kernels/programs/formats.hpp"
#include "tests/kernels/host/format_specs.hpp"
#include "tests/mutation/checks.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace fmha::test {
namespace {

using host_target::test::Spec;
using host_target::test::value_of;

bool same(double a, double b) {
    return std::isnan(b) ? std::isnan(a) : std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool rounds(const Spec& spec, float x, std::uint32_t code) {
    const double want = value_of(spec, code);
    return kernels::encode(x, spec.type) == code &&
           std::abs(kernels::round_to(x, spec.type)) == std::abs(want);
}

bool format_is_right(const Spec& spec) {
    const kernels::Format format = kernels::format_of(spec.type);
    const std::uint32_t sign_bit = 1U << static_cast<unsigned>(spec.exponent_bits + spec.mantissa_bits);
    for (std::uint32_t code = 0; code < 2 * sign_bit; ++code)
        if (!same(kernels::decode(code, format), value_of(spec, code))) return false;
    const auto negative = [&](std::uint32_t code) { return spec.fnuz && code == 0 ? 0 : code | sign_bit; };
    std::uint32_t last = 0;
    for (std::uint32_t code = 0; value_of(spec, code) != spec.largest; last = ++code) {
        const double low = value_of(spec, code), high = value_of(spec, code + 1);
        const auto exact = static_cast<float>(low), middle = static_cast<float>((low + high) / 2);
        const std::uint32_t even = code % 2 == 0 ? code : code + 1;
        for (const auto& [x, to] : {std::pair{exact, code},
                                    {middle, even},
                                    {std::nextafter(middle, -INFINITY), code},
                                    {std::nextafter(middle, INFINITY), code + 1}})
            if (!rounds(spec, x, to) || !rounds(spec, -x, negative(to))) return false;
    }
    const auto largest = static_cast<float>(spec.largest);
    if (!rounds(spec, largest, last) || !rounds(spec, -largest, negative(last))) return false;
    // Above the largest: 8 and 4 bits stay there, the others become infinite from half a step on (T-5).
    const bool stays = element_bits(spec.type) <= 8;
    const auto half_step =
        static_cast<float>((spec.largest - value_of(spec, last - 1)) / 2); // exact, a power of two
    const std::uint32_t above = stays ? last : last + 1;
    const auto overflows = [&](float x) {
        return rounds(spec, x, above) && rounds(spec, -x, negative(above));
    };
    if (!overflows(largest + half_step) || !overflows(INFINITY)) return false;
    for (float x = 0x1p127F; x > largest + half_step; x /= 2)
        if (!overflows(x) || !overflows(x * 1.37F)) return false;
    if (!stays && !rounds(spec, std::nextafter(largest + half_step, 0.0F), last)) return false;
    if (spec.type == ElementType::fp4) return true; // no NaN
    for (const float nan : {std::nanf(""), -std::nanf("")}) {
        const std::uint32_t code = kernels::encode(nan, spec.type);
        if (!std::isnan(value_of(spec, code)) || !std::isnan(kernels::round_to(nan, spec.type))) return false;
        const std::uint32_t sign = std::signbit(nan) ? sign_bit : 0;
        if (!spec.fnuz && (code & sign_bit) != sign) return false;
    }
    return true;
}

} // namespace

bool small_floats_are_right() {
    for (const Spec& spec : host_target::test::specs)
        if (!format_is_right(spec)) return false;
    for (std::uint32_t code = 0; code < 255; ++code)
        if (kernels::decode_e8m0(code) != std::ldexp(1.0, static_cast<int>(code) - 127)) return false;
    if (!std::isnan(kernels::decode_e8m0(255))) return false;
    for (const float x : {0.0F, -0.0F, 1.5F, -3e38F, 1e-40F})
        if (kernels::encode(x, ElementType::fp32) != std::bit_cast<std::uint32_t>(x) ||
            std::bit_cast<std::uint32_t>(kernels::round_to(x, ElementType::fp32)) !=
                std::bit_cast<std::uint32_t>(x))
            return false;
    return true;
}

} // namespace fmha::test
