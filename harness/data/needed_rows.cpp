#include "harness/data/needed_rows.hpp"

namespace fmha::harness {

NeededRows::NeededRows(std::span<const reference::RowId> rows, std::int64_t tile_rows,
                       std::int64_t query_heads)
    : tile_rows_(tile_rows) {
    for (const reference::RowId& row : rows) {
        tiles_[{row.b, row.h}].insert(row.i / tile_rows);
        key_heads_.emplace(row.b, row.h / query_heads);
    }
}

} // namespace fmha::harness
