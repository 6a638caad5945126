#include "harness/data/needed_rows.hpp"

namespace fmha::harness {

NeededRows::NeededRows(std::span<const reference::RowId> rows, const RowTile& tile, std::int64_t query_heads)
    : tile_(tile) {
    for (const reference::RowId& row : rows) {
        tiles_[{row.b, row.h / tile.heads}].insert(row.i / tile.rows);
        key_heads_.emplace(row.b, row.h / query_heads);
    }
}

} // namespace fmha::harness
