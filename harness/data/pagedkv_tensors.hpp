#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/data/role.hpp"

namespace fmha::harness {

template <>
std::span<const Role<PagedKvArgs>> roles_of<PagedKvArgs>();
template <>
void bind_values<PagedKvArgs>(const DataSource& source, PagedKvArgs& args);

/// All memory of one paged-KV case.
using PagedKvTensors = FamilyTensors<PagedKvArgs>;

} // namespace fmha::harness
