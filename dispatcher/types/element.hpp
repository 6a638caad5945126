#pragma once

#include "dispatcher/types/element_type.hpp"
#include "dispatcher/types/enums.hpp"

/// Names of the types of elements. Device code includes element_type.hpp alone.
namespace fmha {

template <>
struct EnumTable<ElementType> {
    using enum ElementType;
    static constexpr std::array<EnumName<ElementType>, 11> names{{{fp32, "fp32"},
                                                                  {fp16, "fp16"},
                                                                  {bf16, "bf16"},
                                                                  {fp8_ocp, "fp8_ocp"},
                                                                  {fp8_fnuz, "fp8_fnuz"},
                                                                  {bf8_ocp, "bf8_ocp"},
                                                                  {bf8_fnuz, "bf8_fnuz"},
                                                                  {fp4, "fp4"},
                                                                  {e8m0, "e8m0"},
                                                                  {uint8, "uint8"},
                                                                  {int32, "int32"}}};
    static constexpr auto& aliases = no_aliases<ElementType>;
};

template <>
struct EnumTable<Fp8Flavour> {
    static constexpr std::array<EnumName<Fp8Flavour>, 2> names{
        {{Fp8Flavour::ocp, "ocp"}, {Fp8Flavour::fnuz, "fnuz"}}};
    static constexpr auto& aliases = no_aliases<Fp8Flavour>;
};

} // namespace fmha
