#pragma once

#include <functional>
#include <vector>

namespace fmha::harness {

/// Level numbers, one per feature; −1 = not chosen yet.
using LevelRow = std::vector<int>;

/// True when a partly chosen row already contains a forbidden combination.
using Forbidden = std::function<bool(const LevelRow&)>;

/// Rows such that every pair of levels of two features that some allowed row can contain is in at least one
/// row (greedy, deterministic). `level_counts[f]` is the number of levels of feature f.
std::vector<LevelRow> covering_array(const std::vector<int>& level_counts, const Forbidden& forbidden);

/// Completes a partly chosen row within the constraints; false when that is impossible.
bool complete_row(LevelRow& row, const std::vector<int>& level_counts, const Forbidden& forbidden);

} // namespace fmha::harness
