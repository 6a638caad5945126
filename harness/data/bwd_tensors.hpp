#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/data/role.hpp"

namespace fmha::harness {

template <>
std::span<const Role<BwdArgs>> roles_of<BwdArgs>();
template <>
void bind_values<BwdArgs>(const DataSource& source, BwdArgs& args);

/// All memory of one backward case. O and LSE ("o", "lse") hold forward's results and the workspace is laid out for a
/// kernel, so both are empty until the family fills them; where the case runs forward's kernel, O, LSE and random bytes are
/// outputs.
using BwdTensors = FamilyTensors<BwdArgs>;

/// Whether forward's kernel runs first.
bool runs_forward(const Case& c);

/// Dropout as it made the random bytes of the case. Bytes that are given are those of another seed than the arguments have, so that
/// a kernel that replays them is wrong.
DropoutArgs dropout_of_bytes(const Case& c);

} // namespace fmha::harness
