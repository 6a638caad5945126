#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/bench/bench.hpp"

#include <span>
#include <string>
#include <vector>

/// The files that the scripts of upstream's tile engine write, column for column.
namespace fmha::harness {

/// A row with the case that it is about; both outlive this.
struct TileEngineRow {
    const Case* of = nullptr;
    const BenchRow* row = nullptr;
};

/// 28 columns: a line a kernel and problem, the fastest first. A kernel that is not right has its status and no number of its speed.
/// Rows without a kernel are left out.
std::string tile_engine_csv(std::span<const TileEngineRow> rows);

/// 38 columns: a line for each measured row, in their order. Its columns have no room for a kernel that is not right.
std::string sweep_csv(std::span<const TileEngineRow> rows);

struct TileEngineRun {
    std::string arch;
    double seconds = 0.0;     ///< of the whole benchmark
    std::size_t problems = 0; ///< cases
};

/// {"metadata": …, "results": […]}; kernels are parts of this program or were built before, so its time of building is 0.
Json tile_engine_json(const TileEngineRun& run, std::span<const TileEngineRow> rows);

} // namespace fmha::harness
