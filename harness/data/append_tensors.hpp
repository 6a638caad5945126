#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/data/role.hpp"

namespace fmha::harness {

template <>
std::span<const Role<AppendKvArgs>> roles_of<AppendKvArgs>();
template <>
void bind_values<AppendKvArgs>(const DataSource& source, AppendKvArgs& args);

/// All memory of one append-KV case.
using AppendKvTensors = FamilyTensors<AppendKvArgs>;

/// Calls visit(b, i, position) for every new key of every entry.
template <class Visit>
void each_new_key(const DataSource& source, Visit&& visit) {
    for (std::int64_t b = 0; b < source.c.batch; ++b)
        for (std::int64_t i = 0; i < source.c.append.seqlen_knew; ++i)
            visit(b, i, source.geometry.entries[static_cast<std::size_t>(b)].seqlen_k + i);
}

} // namespace fmha::harness
