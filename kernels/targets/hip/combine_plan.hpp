#pragma once

#include "dispatcher/types/element.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "kernels/programs/fmha_fwd_splitkv_combine.hpp"
#include "kernels/targets/hip/plan_products.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// The plan of split-KV's combine kernel: tiles of fp32 whose lanes hold four consecutive channels of one row each.
struct CombinePlan : BlockShape {
    RowPlan rows;
    AccumulatorPlan tile;
};

/// The plan of a configuration, or the problem with it.
constexpr CombinePlan combine_plan_of(const KernelConfig& cfg) {
    constexpr int channels = 32, lane_channels = 4, row_lanes = channels / lane_channels;
    const auto narrow = [](int number) { return static_cast<std::int16_t>(number); };
    CombinePlan plan;
    plan.unit = matrix_unit(cfg.arch);
    if (plan.unit == MatrixUnit::none || cfg.algorithm.tile.n1 <= 0 ||
        cfg.algorithm.tile.n1 % channels != 0) {
        plan.problem =
            plan.unit == MatrixUnit::none ? PlanProblem::unknown_unit : PlanProblem::combine_channels;
        return plan;
    }
    const bool wide =
        plan.unit == MatrixUnit::cdna2 || plan.unit == MatrixUnit::cdna3 || plan.unit == MatrixUnit::cdna4;
    plan.wave_size = wide ? 64 : 32;
    // The layout in the words of an instruction that has a wave's rows and `channels` columns for its result.
    InstructionInfo layout;
    layout.m = narrow(plan.wave_size / row_lanes);
    layout.n = channels;
    layout.wave_size = plan.wave_size;
    layout.c_elements = lane_channels;
    layout.c_row = {{0, 0, 0, 1, 2, static_cast<std::int8_t>(wide ? 4 : 0)}, {}};
    layout.c_col = {{4, 8, 16, 0, 0, 0}, {1, 2}};
    plan.waves = narrow(kernels::combine_rows / layout.m);
    plan.threads = narrow(plan.waves * plan.wave_size);
    plan.tile = planning::accumulator_plan(layout, false, plan.waves, 1, cfg.algorithm.tile.n1 / channels);
    plan.tile.stored = element_types(cfg.signature.data_type, fp8_flavour(cfg.arch)).o;
    plan.rows.block_rows = kernels::combine_rows;
    plan.rows.wave_rows = plan.rows.tile_rows = layout.m;
    plan.rows.slots = plan.rows.registers = 1; // a lane has one row
    plan.rows.row = plan.tile.row;
    plan.rows.sharing_lanes = plan.tile.sharing_lanes;
    return plan;
}

} // namespace fmha::hip_target
