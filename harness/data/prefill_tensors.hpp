#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/data/role.hpp"

namespace fmha::harness {

template <>
std::span<const Role<BatchPrefillArgs>> roles_of<BatchPrefillArgs>();
template <>
void bind_values<BatchPrefillArgs>(const DataSource& source, BatchPrefillArgs& args);

/// All memory of one case of batch prefill.
using PrefillTensors = FamilyTensors<BatchPrefillArgs>;

} // namespace fmha::harness
