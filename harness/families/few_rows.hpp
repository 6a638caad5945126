#pragma once

#include "reference/attention_args.hpp"
#include "reference/rows.hpp"

#include <cstdint>
#include <vector>

namespace fmha::harness {

/// A sample of rows that lies in few tiles, ascending, for targets that run single tiles of a large problem. The first head of the
/// first entry and the last one of the last have the fixed rows of the usual sample (tolerances B.1). Beside them each entry has one
/// head, and each head one entry, as `seed` says, with rows of one window: the beginning of the sequence, its middle, its end, or 32
/// rows somewhere. So every entry and every head is judged, and over them every kind of tile.
std::vector<reference::RowId> few_rows(const reference::AttentionArgs& args, std::uint64_t seed);

/// `few_rows` returns at most so many.
std::int64_t most_few_rows(std::int64_t entries, std::int64_t heads);

} // namespace fmha::harness
