#pragma once

#include "dispatcher/types/element_type.hpp"

#include <cstdint>
#include <vector>

namespace fmha::hip_target {

/// The values of all codes of a type of at most 16 bits, by code. The list is computed once and lives as long as the process.
/// With `subnormals_are_zero` it is what the matrix unit of CDNA 2 sees.
const std::vector<float>& code_values(ElementType type, bool subnormals_are_zero = false);

} // namespace fmha::hip_target
