#pragma once

#include "kernels/targets/hip/plan_products.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// The plan of kernels that work on whole lines of a matrix and multiply none: tiles of fp32 whose lanes hold four
/// consecutive channels of one row each.
struct LinePlan : BlockShape {
    RowPlan rows;
    AccumulatorPlan tile;
};

inline constexpr int line_channels = 32; ///< those that the lanes of a row hold together

/// Blocks of `block_rows` rows and `channels` channels, a multiple of `line_channels`, in at most `most_waves` waves.
constexpr LinePlan line_plan(MatrixUnit unit, int block_rows, int most_waves, int channels) {
    using planning::narrow;
    constexpr int lane_channels = 4, row_lanes = line_channels / lane_channels;
    LinePlan plan;
    plan.unit = unit;
    const bool wide = is_cdna(unit);
    plan.wave_size = wide ? 64 : 32;
    // The layout in the words of an instruction that has a wave's rows and `line_channels` columns for its result.
    InstructionInfo layout;
    layout.m = narrow(plan.wave_size / row_lanes);
    layout.n = line_channels;
    layout.wave_size = plan.wave_size;
    layout.c_elements = lane_channels;
    layout.c_row = {{0, 0, 0, 1, 2, static_cast<std::int8_t>(wide ? 4 : 0)}, {}};
    layout.c_col = {{4, 8, 16, 0, 0, 0}, {1, 2}};
    const int fragments = block_rows / layout.m;
    plan.waves = narrow(fragments < most_waves ? fragments : most_waves);
    plan.threads = narrow(plan.waves * plan.wave_size);
    plan.tile = planning::accumulator_plan(layout, false, plan.waves, fragments / plan.waves,
                                           channels / line_channels);
    plan.rows.block_rows = narrow(block_rows);
    plan.rows.wave_rows = plan.tile.wave_rows;
    plan.rows.tile_rows = layout.m;
    plan.rows.slots = 1; // a lane has one row of a fragment
    plan.rows.registers = plan.tile.row_tiles;
    plan.rows.row = plan.tile.row;
    plan.rows.sharing_lanes = plan.tile.sharing_lanes;
    return plan;
}

} // namespace fmha::hip_target
