#pragma once

#include "dispatcher/types/element_type.hpp"
#include "dispatcher/types/kernel_values.hpp"
#include "kernels/programs/fmha_fwd_appendkv.hpp"
#include "kernels/targets/hip/plan_products.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// How a block copies rows of one matrix to another.
struct CopyPlan {
    ElementType type = ElementType::fp16;
    std::int16_t rows = 0;
    std::int16_t threads = 0, line_threads = 0; ///< of a block, and those that share a row
};

/// The plan of append-KV: tiles of fp32 with one column for every pair of channels, and copies.
struct AppendPlan : BlockShape {
    RowPlan rows;
    AccumulatorPlan tile;
    CopyPlan copies;
};

/// The plan of a configuration, or the problem with it. Lanes hold four consecutive pairs of a row where channels of the same
/// kind lie next to each other, and one where they alternate, so that neighbouring lanes read neighbouring elements.
constexpr AppendPlan append_plan_of(const KernelConfig& cfg) {
    using planning::narrow;
    constexpr int threads = 256, block_rows = 64, columns = kernels::rotary_pairs;
    AppendPlan plan;
    plan.unit = matrix_unit(cfg.arch);
    const bool rows_fit = cfg.algorithm.tile.m0 == block_rows && cfg.algorithm.tile.n0 == block_rows;
    if (plan.unit == MatrixUnit::none || !rows_fit) {
        plan.problem = rows_fit ? PlanProblem::unknown_unit : PlanProblem::append_rows;
        return plan;
    }
    const bool wide = is_cdna(plan.unit);
    const bool alternate = cfg.signature.rope == Rope::interleaved;
    plan.wave_size = wide ? 64 : 32;
    plan.threads = threads;
    plan.waves = narrow(threads / plan.wave_size);
    // The layout in the words of an instruction that has so many rows and columns for its result.
    InstructionInfo layout;
    layout.n = columns;
    layout.c_elements = alternate ? 1 : 4;
    layout.m = narrow(plan.wave_size * layout.c_elements / columns);
    layout.wave_size = plan.wave_size;
    const auto sixth = static_cast<std::int8_t>(!wide ? 0 : alternate ? 1 : 4);
    if (alternate) {
        layout.c_row = {{0, 0, 0, 0, 0, sixth}, {}};
        layout.c_col = {{1, 2, 4, 8, 16, 0}, {}};
    } else {
        layout.c_row = {{0, 0, 0, 1, 2, sixth}, {}};
        layout.c_col = {{4, 8, 16, 0, 0, 0}, {1, 2}};
    }
    plan.tile = planning::accumulator_plan(layout, false, plan.waves, block_rows / plan.waves / layout.m, 1);
    plan.rows.block_rows = block_rows;
    plan.rows.wave_rows = plan.tile.wave_rows;
    plan.rows.tile_rows = plan.tile.rows;
    plan.rows.slots = 1; // a lane has one row of a fragment
    plan.rows.row = plan.tile.row;
    plan.rows.sharing_lanes = plan.tile.sharing_lanes;
    plan.rows.registers = plan.tile.row_tiles;
    plan.copies.type = plan.tile.loaded = plan.tile.stored =
        element_types(cfg.signature.data_type, fp8_flavour(cfg.arch)).k;
    plan.copies.rows = block_rows;
    plan.copies.threads = threads;
    const std::int64_t hdim =
        cfg.signature.hdim_q > cfg.signature.hdim_v ? cfg.signature.hdim_q : cfg.signature.hdim_v;
    plan.copies.line_threads = 1;
    while (plan.copies.line_threads * 16 < element_bytes(plan.copies.type, hdim) &&
           plan.copies.line_threads < threads)
        plan.copies.line_threads = narrow(2 * plan.copies.line_threads);
    return plan;
}

} // namespace fmha::hip_target
