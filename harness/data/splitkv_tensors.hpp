#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/data/role.hpp"

namespace fmha::harness {

template <>
std::span<const Role<SplitKvArgs>> roles_of<SplitKvArgs>();
template <>
void bind_values<SplitKvArgs>(const DataSource& source, SplitKvArgs& args);

/// All memory of one split-KV case.
using SplitKvTensors = FamilyTensors<SplitKvArgs>;

} // namespace fmha::harness
