#pragma once

#include "dispatcher/types/args.hpp"
#include "harness/cases/cache_case.hpp"
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
        for (std::int64_t i = 0; i < new_keys(source.c); ++i)
            visit(b, i,
                  first_new_key(source.c, source.geometry.entries[static_cast<std::size_t>(b)].seqlen_k) + i);
}

namespace roles {

/// K_new or V_new, of a case of append-KV or of one that appends before it attends, and the places in the cache that they are
/// for; all others stay.
template <bool values>
TensorLayout layout_new(const Case& c, const Geometry& g);
template <bool values>
void fill_new(const DataSource& source, GuardedTensor& tensor);
template <bool values>
void rows_of_new(const DataSource& source, const RowVisit& visit);
template <bool values>
void rows_of_appended(const DataSource& source, const RowVisit& visit);

/// The tables of RoPE, of one cosine and one sine a position and pair, and the rotated channels of Q.
TensorLayout layout_angles(const Case& c, const Geometry& g);
template <bool sine>
void fill_angles(const DataSource& source, GuardedTensor& tensor);
void rows_of_angles(const DataSource& source, const RowVisit& visit);
void rotated_rows_of_q(const DataSource& source, const RowVisit& visit);

} // namespace roles

} // namespace fmha::harness
