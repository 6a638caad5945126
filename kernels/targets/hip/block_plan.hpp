#pragma once

#include "dispatcher/types/element.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "kernels/targets/hip/plan_memory.hpp"
#include "kernels/targets/hip/plan_products.hpp"

#include <cstdint>

/// Everything that follows from a configuration before a block runs: who holds which element, what lies where
/// in LDS, how many registers a thread needs. A constant on a device, a value on the host.
namespace fmha::hip_target {

/// The plan of a configuration, or the problem with it.
constexpr BlockPlan plan_of(const KernelConfig& cfg) {
    const Tile& tile = cfg.algorithm.tile;
    const GemmTriples& warp = cfg.algorithm.warp;
    const ElementTypes types = element_types(cfg.signature.data_type, fp8_flavour(cfg.arch));
    const auto narrow = [](int number) { return static_cast<std::int16_t>(number); };

    const auto refused = [](PlanProblem problem) {
        BlockPlan none;
        none.problem = problem;
        return none;
    };

    BlockPlan plan;
    const MatrixUnit unit = matrix_unit(cfg.arch);
    if (unit == MatrixUnit::none) return refused(PlanProblem::unknown_unit);
    plan.unit = unit;
    plan.transposed = unit != MatrixUnit::nvidia;
    plan.type_q = types.q;
    plan.type_k = types.k;
    plan.type_v = types.v;
    plan.type_p = types.p;
    plan.type_o = types.o;
    plan.type_bias = types.bias;
    const bool scaled = cfg.signature.qscale == QScale::mx;
    const InstructionInfo first =
        instruction_info(instruction_for(unit, types.k, warp.m0, warp.n0, warp.k0, scaled));
    const InstructionInfo second =
        instruction_info(instruction_for(unit, types.v, warp.m1, warp.n1, warp.k1, scaled));
    if (first.k == 0 || second.k == 0) return refused(PlanProblem::no_instruction);
    if (first.m != second.m || first.n != second.n) return refused(PlanProblem::different_shapes);
    if (types.q != types.k || types.p != types.v) return refused(PlanProblem::mixed_operands);
    plan.first = planning::product_plan(first, warp.k0, plan.transposed);
    plan.second = planning::product_plan(second, warp.k1, plan.transposed);
    if (plan.first.left_elements > 32 || plan.second.left_elements > 32 ||
        (scaled && (plan.first.parts != 1 || plan.second.parts != 1)))
        return refused(PlanProblem::no_instruction);

    plan.wave_size = first.wave_size;
    plan.waves = cfg.algorithm.wave.m0;
    plan.threads = narrow(plan.waves * plan.wave_size);
    const auto whole = [](int extent, int part) { return part > 0 && extent > 0 && extent % part == 0; };
    if (cfg.algorithm.wave.n0 != 1 || cfg.algorithm.wave.n1 != 1)
        return refused(PlanProblem::waves_along_keys);
    if (!whole(tile.m0, plan.waves * plan.first.rows)) return refused(PlanProblem::row_tiles);
    if (!whole(tile.n0, plan.first.cols)) return refused(PlanProblem::key_tiles);
    if (!whole(tile.k0, plan.first.depth) || !whole(tile.k0max, tile.k0))
        return refused(PlanProblem::first_depth);
    if (!whole(tile.k1, plan.second.depth) || !whole(tile.n0, tile.k1))
        return refused(PlanProblem::second_depth);
    if (!whole(tile.n1, plan.second.cols)) return refused(PlanProblem::channel_tiles);
    plan.wave_rows = narrow(tile.m0 / plan.waves);
    plan.row_tiles = narrow(plan.wave_rows / plan.first.rows);
    plan.key_tiles = narrow(tile.n0 / plan.first.cols);
    plan.channel_tiles = narrow(tile.n1 / plan.second.cols);

    // An accumulator register's row offset, counted in rows that the lane holds.
    plan.row_slots = 1;
    for (int bit = 0; (1 << bit) < plan.first.acc_registers; ++bit) {
        const int rows = plan.first.acc_row.reg[bit];
        if (rows == 0) continue;
        for (int r = 0; r < plan.first.acc_registers; ++r)
            if ((r >> bit & 1) != 0)
                plan.slot_of_register[r] =
                    static_cast<std::int8_t>(plan.slot_of_register[r] + plan.row_slots);
        for (int slot = 0; slot < plan.row_slots; ++slot)
            plan.row_of_slot[slot + plan.row_slots] = static_cast<std::int8_t>(plan.row_of_slot[slot] + rows);
        plan.row_slots = narrow(2 * plan.row_slots);
    }

    plan.load_matrix = unit == MatrixUnit::nvidia && element_bits(types.v) == 16;
    if (!planning::weights_cover_fragments(plan)) return refused(PlanProblem::weight_keys);
    planning::plan_weights(plan);
    if (!planning::weights_keep_blocks(plan)) return refused(PlanProblem::weight_blocks);

    plan.score_registers = narrow(plan.row_tiles * plan.key_tiles * plan.first.acc_registers);
    plan.output_registers = narrow(plan.row_tiles * plan.channel_tiles * plan.second.acc_registers);
    plan.part_registers = plan.second.acc_registers;
    if (scaled) planning::plan_scales(plan, tile);
    plan.row_registers = narrow(plan.row_tiles * plan.row_slots);
    plan.weight_words = narrow(plan.row_tiles * (tile.n0 / plan.second.depth) * plan.second.left_fragment);
    plan.left_words = narrow(plan.row_tiles * plan.first.left_fragment);
    const int words_first = plan.first.right_fragment, words_second = plan.second.right_fragment;
    // ldmatrix delivers four words at a time.
    plan.right_words = narrow(plan.load_matrix ? 4 : words_first > words_second ? words_first : words_second);
    const int query_words = plan.row_tiles * (tile.k0max / plan.first.depth) * plan.first.left_fragment;
    // Block scales add a part of the product and much scalar state to a full file.
    const bool crowded = cfg.signature.qscale == QScale::blockscale && plan.output_registers >= 128;
    // Scaled queries stay in registers, where their scales are.
    const bool in_registers = unit != MatrixUnit::nvidia && !crowded &&
                              (scaled || query_words <= planning::query_register_limit(unit));
    plan.query_place = in_registers ? QueryPlace::registers : QueryPlace::lds;
    plan.query_words = narrow(in_registers ? query_words : 1);
    bool fits = planning::plan_staging(plan, cfg);
    if (!fits && !in_registers && unit != MatrixUnit::nvidia) {
        plan.query_place = QueryPlace::memory;
        fits = planning::plan_staging(plan, cfg);
    }
    if (!fits) plan.problem = PlanProblem::lds;
    planning::plan_read_ahead(plan, cfg);
    return plan;
}

} // namespace fmha::hip_target
