#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fmha::harness {

/// How often a covering array has each pair of feature levels, or why it cannot.
struct PairTable {
    struct Level {
        std::string feature, value;
    };
    struct Cell {
        std::int64_t cases = 0;
        std::string why_not; ///< set for a combination that is excluded or follows to be impossible
    };

    std::vector<Level> levels;
    /// cells[i][j] for i < j and levels of different features; the rest is unused.
    std::vector<std::vector<Cell>> cells;

    bool pairs(std::size_t i, std::size_t j) const { return levels[i].feature != levels[j].feature; }
    /// Pairs that are neither covered nor explained.
    std::int64_t empty_cells() const;
    /// The triangle as text: counts, a letter for each reason, and the reasons below.
    std::string to_text() const;
};

} // namespace fmha::harness
