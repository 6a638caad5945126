#pragma once

#include "dispatcher/types/enumerations.hpp"

#include <cstdint>
#include <string_view>

namespace fmha {

/// How one stored element is encoded (semantics 2.1). The 8-bit flavour is part of the type here; which one
/// applies is a property of the problem's architecture at run time (T-1).
enum class ElementType : std::uint8_t {
    fp32,
    fp16,
    bf16,
    fp8_ocp,
    fp8_fnuz,
    bf8_ocp,
    bf8_fnuz,
    fp4,
    e8m0,
    uint8,
    int32, ///< lengths, tables and indices
};

enum class Fp8Flavour : std::uint8_t { ocp, fnuz };

/// Bits of one element (4 for packed fp4). Always inlined, because kernels number registers by it.
[[gnu::always_inline]] constexpr int element_bits(ElementType type) {
    switch (type) {
    case ElementType::fp32:
    case ElementType::int32:
        return 32;
    case ElementType::fp16:
    case ElementType::bf16:
        return 16;
    case ElementType::fp4:
        return 4;
    default:
        return 8;
    }
}

/// Bytes that `count` consecutive elements occupy; the one element-size function of the project.
constexpr std::int64_t element_bytes(ElementType type, std::int64_t count = 1) {
    return (count * element_bits(type) + 7) / 8;
}

/// Storage types that a data-type tag stands for (semantics 2.2).
struct ElementTypes {
    ElementType q = ElementType::fp16, k = ElementType::fp16, v = ElementType::fp16;
    ElementType bias = ElementType::fp16, p = ElementType::fp16, o = ElementType::fp16;
};

constexpr ElementTypes element_types(DataType tag, Fp8Flavour flavour) {
    using enum ElementType;
    const ElementType fp8 = flavour == Fp8Flavour::ocp ? fp8_ocp : fp8_fnuz;
    const ElementType bf8 = flavour == Fp8Flavour::ocp ? bf8_ocp : bf8_fnuz;
    switch (tag) {
    case DataType::fp32:
        return {fp32, fp32, fp32, fp32, fp32, fp32};
    case DataType::fp16:
        return {fp16, fp16, fp16, fp16, fp16, fp16};
    case DataType::bf16:
        return {bf16, bf16, bf16, bf16, bf16, bf16};
    case DataType::fp8:
        return {fp8, fp8, fp8, fp32, fp8, fp8};
    case DataType::bf8:
        return {bf8, bf8, bf8, bf8, bf8, bf8};
    case DataType::fp8bf16:
        return {fp8, fp8, fp8, fp32, fp8, bf16};
    case DataType::fp8fp32:
        return {fp8, fp8, fp8, fp32, fp8, fp32};
    case DataType::mxfp8:
        return {fp8, fp8, fp8, fp32, fp8, fp32};
    case DataType::mxfp4:
        return {fp4, fp4, fp4, fp32, fp4, fp32};
    }
    return {};
}

/// gfx942 is FNUZ, every other architecture with 8-bit types is OCP (T-1).
constexpr Fp8Flavour fp8_flavour(std::string_view arch) {
    // The literal brings its length along: device code that had to count it would call the host's strlen, and nvcc silently leaves
    // out whatever comes after such a call.
    using namespace std::string_view_literals;
    return arch == "gfx942"sv ? Fp8Flavour::fnuz : Fp8Flavour::ocp;
}

} // namespace fmha
