#pragma once

#include "dispatcher/types/element.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "kernels/programs/matrix.hpp"
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
    const bool transposed = unit != MatrixUnit::nvidia;
    const bool scaled = cfg.signature.qscale == QScale::mx;
    const InstructionInfo first =
        instruction_info(instruction_for(unit, types.k, warp.m0, warp.n0, warp.k0, scaled));
    const InstructionInfo second =
        instruction_info(instruction_for(unit, types.v, warp.m1, warp.n1, warp.k1, scaled));
    if (first.k == 0 || second.k == 0) return refused(PlanProblem::no_instruction);
    if (first.m != second.m || first.n != second.n) return refused(PlanProblem::different_shapes);
    if (types.q != types.k || types.p != types.v) return refused(PlanProblem::mixed_operands);
    plan.first = planning::product_plan(first, warp.k0, transposed);
    plan.second = planning::product_plan(second, warp.k1, transposed);
    if (plan.first.left_elements > 32 || plan.second.left_elements > 32 ||
        (scaled && (plan.first.parts != 1 || plan.second.parts != 1)))
        return refused(PlanProblem::no_instruction);
    plan.first.load_matrix = plan.second.load_matrix =
        unit == MatrixUnit::nvidia && element_bits(types.v) == 16;
    plan.second.own_factor =
        cfg.signature.qscale == QScale::blockscale || cfg.signature.qscale == QScale::kv_blockscale;

    plan.wave_size = first.wave_size;
    plan.waves = cfg.algorithm.wave.m0;
    plan.threads = narrow(plan.waves * plan.wave_size);
    const int rows = transposed ? first.n : first.m, cols = transposed ? first.m : first.n;
    const auto whole = [](int extent, int part) { return part > 0 && extent > 0 && extent % part == 0; };
    if (cfg.algorithm.wave.n0 != 1 || cfg.algorithm.wave.n1 != 1)
        return refused(PlanProblem::waves_along_keys);
    if (!whole(tile.m0, plan.waves * rows)) return refused(PlanProblem::row_tiles);
    if (!whole(tile.n0, cols)) return refused(PlanProblem::key_tiles);
    if (!whole(tile.k0, plan.first.depth) || !whole(tile.k0max, tile.k0))
        return refused(PlanProblem::first_depth);
    if (!whole(tile.k1, plan.second.depth) || !whole(tile.n0, tile.k1))
        return refused(PlanProblem::second_depth);
    if (!whole(tile.n1, cols)) return refused(PlanProblem::channel_tiles);
    const int row_tiles = tile.m0 / plan.waves / rows;
    AccumulatorPlan scores =
        planning::accumulator_plan(first, transposed, plan.waves, row_tiles, tile.n0 / cols);
    AccumulatorPlan output =
        planning::accumulator_plan(second, transposed, plan.waves, row_tiles, tile.n1 / cols);
    scores.loaded = types.bias;
    output.stored = cfg.signature.family == KernelFamily::fwd_splitkv ? ElementType::fp32 : types.o;
    output.skips_ones = unit == MatrixUnit::nvidia ? output.registers > scores.registers
                                                   : output.registers >= scores.registers;
    planning::give_tile(plan.first, scores, tile.k0max, tile.k0);
    planning::give_tile(plan.second, output, tile.n0, tile.k1);
    plan.rows = planning::row_plan(scores);

    plan.key.type = types.k;
    plan.key.columns = tile.n0;
    plan.key.depth = tile.k0max;
    plan.key.step = tile.k0;
    plan.key.transposed = plan.key.stored_by_column = plan.key.by_column = true;
    plan.value.type = types.v;
    plan.value.columns = tile.n1;
    plan.value.depth = tile.n0;
    plan.value.step = tile.k1;
    // A tile of a linear page that holds whole tiles lies like one of any other matrix. Kernels of CDNA, which would copy it straight
    // to LDS then, have not been audited with that.
    const bool as_others = unit == MatrixUnit::nvidia && cfg.signature.kv_layout == KvLayout::linear &&
                           cfg.signature.page_size % tile.n0 == 0;
    plan.staging.gathers = cfg.signature.family == KernelFamily::batch_prefill && !as_others;
    // Vectors of the vectorized layout of V are slots of one channel (B-3).
    plan.value.stored_by_column =
        cfg.signature.v_layout == VLayout::column || cfg.signature.kv_layout == KvLayout::vectorized;
    const kernels::Granules granules = kernels::Granules::of(cfg);
    plan.key.whole_lines = granules.hdim_q % tile.k0max == 0;
    plan.value.whole_lines = !plan.value.stored_by_column && granules.hdim_v % tile.n1 == 0;
    plan.weights.type = types.p;
    plan.weights.words = narrow(row_tiles * plan.second.depth_fragments * plan.second.left_fragment);

    if (!planning::weights_cover_fragments(scores, plan.second)) return refused(PlanProblem::weight_keys);
    planning::plan_weights(scores, plan.second, plan.weights, plan.value.order);
    if (!planning::weights_keep_blocks(scores, plan.second, plan.weights, plan.value.order, plan.wave_size))
        return refused(PlanProblem::weight_blocks);
    if (scaled) planning::plan_scales(plan);

    plan.query.type = types.q;
    const int query_words = row_tiles * plan.first.depth_fragments * plan.first.left_fragment;
    // Block scales add a part of the product and much scalar state to a full file.
    const bool crowded = plan.second.own_factor && output.registers >= 128;
    // Scaled queries stay in registers, where their scales are.
    const bool in_registers = unit != MatrixUnit::nvidia && !crowded &&
                              (scaled || query_words <= planning::query_register_limit(unit));
    plan.query.place = in_registers ? OperandPlace::registers : OperandPlace::lds;
    plan.query.words = narrow(in_registers ? query_words : 1);
    bool fits = planning::plan_staging(plan, cfg);
    if (!fits && !in_registers && unit != MatrixUnit::nvidia) {
        plan.query.place = OperandPlace::memory;
        fits = planning::plan_staging(plan, cfg);
    }
    if (!fits) plan.problem = PlanProblem::lds;
    planning::plan_places(plan);
    planning::plan_read_ahead(plan);
    return plan;
}

} // namespace fmha::hip_target
