#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/data/role.hpp"

#include <cstdint>
#include <vector>

namespace fmha::harness {

template <>
std::span<const Role<FwdArgs>> roles_of<FwdArgs>();
template <>
void bind_values<FwdArgs>(const DataSource& source, FwdArgs& args);

/// All memory of one forward case: tensors with guards, length arrays, small parameters.
using FwdTensors = FamilyTensors<FwdArgs>;

/// Default ALiBi slopes of n heads.
std::vector<float> default_alibi_slopes(std::int64_t heads);

} // namespace fmha::harness
