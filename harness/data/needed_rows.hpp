#pragma once

#include "reference/rows.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace fmha::harness {

/// The tiles in which a target runs single rows of a large problem: query rows of so many heads, the first of both a multiple of these.
struct RowTile {
    std::int64_t rows = 0; ///< 0: all rows are run
    std::int64_t heads = 1;
};

/// The part of a case's tensors that some rows of its output depend on: the queries of their tiles, and the keys of their heads.
class NeededRows {
  public:
    /// Everything.
    NeededRows() = default;
    /// `tile`: a kernel reads and writes so many queries at a time. `query_heads`: of a head of keys.
    NeededRows(std::span<const reference::RowId> rows, const RowTile& tile, std::int64_t query_heads);

    bool all() const { return tile_.rows == 0; }
    /// Of keys.
    bool has_key_head(std::int64_t b, std::int64_t head) const {
        return all() || key_heads_.contains({b, head});
    }

    /// Calls `visit(i)` for those of the first `length` queries of a head that are needed.
    template <class Visit>
    void each_query(std::int64_t b, std::int64_t head, std::int64_t length, Visit&& visit) const {
        if (all()) {
            for (std::int64_t i = 0; i < length; ++i) visit(i);
            return;
        }
        const auto tiles = tiles_.find({b, head / tile_.heads});
        if (tiles == tiles_.end()) return;
        for (const std::int64_t tile : tiles->second)
            for (std::int64_t i = tile * tile_.rows; i < std::min(length, (tile + 1) * tile_.rows); ++i)
                visit(i);
    }

  private:
    using Head = std::pair<std::int64_t, std::int64_t>; ///< entry and head

    RowTile tile_;
    std::map<Head, std::set<std::int64_t>> tiles_; ///< by entry and heads of a tile
    std::set<Head> key_heads_;
};

} // namespace fmha::harness
