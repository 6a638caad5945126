#include "kernels/targets/hip/emulated/code_values.hpp"

#include "dispatcher/types/element.hpp"
#include "kernels/programs/formats.hpp"
#include "kernels/targets/hip/emulated/emulation_error.hpp"

#include <cmath>
#include <cstddef>
#include <fmt/format.h>

namespace fmha::hip_target {
namespace {

std::vector<float> decoded(ElementType type, bool subnormals_are_zero) {
    const kernels::Format format = kernels::format_of(type);
    std::vector<float> values(std::size_t{1} << static_cast<unsigned>(element_bits(type)));
    const float smallest = subnormals_are_zero ? kernels::power_of_two(1 - format.bias) : 0.0F;
    for (std::uint32_t code = 0; code < values.size(); ++code) {
        const float value = kernels::decode(code, format);
        values[code] = std::abs(value) < smallest ? 0.0F : value;
    }
    return values;
}

template <ElementType type>
const std::vector<float>& values_of(bool subnormals_are_zero) {
    static const std::vector<float> as_they_are = decoded(type, false);
    if (!subnormals_are_zero) return as_they_are;
    static const std::vector<float> without_subnormals = decoded(type, true);
    return without_subnormals;
}

} // namespace

const std::vector<float>& code_values(ElementType type, bool subnormals_are_zero) {
    using enum ElementType;
    switch (type) {
    case fp16:
        return values_of<fp16>(subnormals_are_zero);
    case bf16:
        return values_of<bf16>(subnormals_are_zero);
    case fp8_ocp:
        return values_of<fp8_ocp>(subnormals_are_zero);
    case fp8_fnuz:
        return values_of<fp8_fnuz>(subnormals_are_zero);
    case bf8_ocp:
        return values_of<bf8_ocp>(subnormals_are_zero);
    case bf8_fnuz:
        return values_of<bf8_fnuz>(subnormals_are_zero);
    case fp4:
        return values_of<fp4>(subnormals_are_zero);
    case fp32:
    case e8m0:
    case uint8:
    case int32:
        break;
    }
    throw EmulationError(Hazard::unknown_operation, fmt::format("{} has no list of values", to_string(type)));
}

} // namespace fmha::hip_target
