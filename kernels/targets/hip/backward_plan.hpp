#pragma once

#include "dispatcher/types/element_type.hpp"
#include "dispatcher/types/kernel_values.hpp"
#include "kernels/targets/hip/backward_plan_memory.hpp"
#include "kernels/targets/hip/backward_plan_types.hpp"
#include "kernels/targets/hip/plan_products.hpp"
#include "kernels/targets/hip/plan_staging.hpp"

#include <cstdint>

namespace fmha::hip_target {

namespace planning {

/// The rows that columns of `acc` are, for one value each.
constexpr void plan_columns(BackwardPlan& plan, const AccumulatorPlan& acc) {
    RowPlan& rows = plan.rows;
    rows.block_rows = narrow(acc.column_tiles * acc.cols);
    rows.wave_rows = 0; // every wave has all of them
    rows.tile_rows = acc.cols;
    rows.row = acc.col;
    for (std::int8_t& part : rows.row.reg) part = 0;
    for (int bit = 0; (1 << bit) < plan.wave_size; ++bit)
        if (acc.col.lane[bit] == 0) rows.sharing_lanes = narrow(rows.sharing_lanes | 1 << bit);
    plan.column_slots = 1;
    for (int bit = 0; (1 << bit) < acc.fragment; ++bit) {
        if (acc.col.reg[bit] == 0) continue;
        for (int r = 0; r < acc.fragment; ++r)
            if ((r >> bit & 1) != 0)
                plan.slot_of_column[r] = static_cast<std::int8_t>(plan.slot_of_column[r] + plan.column_slots);
        plan.column_slots = static_cast<std::int8_t>(2 * plan.column_slots);
    }
    rows.slots = plan.column_slots;
    for (int r = 0; r < acc.fragment; ++r) rows.row_of_slot[plan.slot_of_column[r]] = acc.col_of_register[r];
    rows.registers = narrow(acc.column_tiles * rows.slots);
}

/// The order of depth of an operand that both sides read from memory.
constexpr DepthOrder natural_order(const ProductPlan& product) {
    DepthOrder order;
    order.natural = true;
    order.depth = product.depth;
    for (int e = 0; e < product.right_elements && e < 32; ++e)
        order.element[e] = static_cast<std::int16_t>(product.right_k.of_reg(e));
    order.lane = product.right_k;
    for (std::int8_t& part : order.lane.reg) part = 0;
    for (int bit = 0; (1 << bit) < product.depth && bit < 8; ++bit)
        order.place[bit] = static_cast<std::int16_t>(1 << bit);
    return order;
}

/// Whether the depth of a right operand lies along the lines of the matrix in LDS as it does in memory.
constexpr void plan_depth_operand(const BackwardPlan& plan, const KernelConfig& cfg,
                                  const ProductPlan& product, OperandPlan& operand) {
    operand.reads_transposed = cfg.algorithm.use_trload && has_transposing_read(plan.unit, operand.type) &&
                               plan_transposed_reads(product, operand);
    operand.by_column =
        !(element_bits(operand.type) == 32 || product.load_matrix || operand.reads_transposed);
}

/// The matrix instructions that a configuration names: of both products with scores, of dK and dV, of dQ.
struct BackwardInstructions {
    InstructionInfo scores, gradients, query_gradients;
    bool transposed = false; ///< AMD's products of scores, dK and dV are computed so

    constexpr int keys() const { return transposed ? scores.n : scores.m; }
    constexpr int queries() const { return transposed ? scores.m : scores.n; }
};

constexpr BackwardInstructions backward_instructions_of(const KernelConfig& cfg, const ElementTypes& types,
                                                        MatrixUnit unit) {
    const GemmTriples& warp = cfg.algorithm.warp;
    const auto of = [&](int m, int n, int k) {
        return instruction_info(instruction_for(unit, types.k, m, n, k));
    };
    return {of(warp.m0, warp.n0, warp.k0), of(warp.m1, warp.n1, warp.k1), of(warp.m2, warp.n2, warp.k2),
            unit != MatrixUnit::nvidia};
}

/// All five products, and the threads that compute them.
constexpr PlanProblem plan_five_products(const KernelConfig& cfg, const ElementTypes& types,
                                         const BackwardInstructions& by, BackwardPlan& plan) {
    const GemmTriples &warp = cfg.algorithm.warp, &wave = cfg.algorithm.wave;
    const auto& [first, second, third, transposed] = by;
    if (first.k == 0 || second.k == 0 || third.k == 0) return PlanProblem::no_instruction;
    if (first.m != second.m || first.n != second.n) return PlanProblem::different_shapes;
    if (types.q != types.k || types.p != types.k || types.o != types.k) return PlanProblem::mixed_operands;
    plan.scores = plan.score_gradients = product_plan(first, warp.k0, transposed);
    plan.value_gradients = plan.key_gradients = product_plan(second, warp.k1, transposed);
    // dQ is left as it is on AMD too: its columns lie in lanes, whose atomic sums fall on neighbouring addresses.
    plan.query_gradients = product_plan(third, warp.k2, false);
    for (ProductPlan* product : {&plan.scores, &plan.score_gradients, &plan.value_gradients,
                                 &plan.key_gradients, &plan.query_gradients}) {
        if (product->left_elements > 32) return PlanProblem::no_instruction;
        product->load_matrix = plan.unit == MatrixUnit::nvidia && element_bits(types.k) == 16;
    }
    plan.wave_size = first.wave_size;
    plan.waves = narrow(wave.m1 * wave.n1);
    plan.threads = narrow(plan.waves * plan.wave_size);
    return PlanProblem::none;
}

/// Whether the waves share the tile, and its parts are of whole instructions.
constexpr PlanProblem backward_tile_problem(const KernelConfig& cfg, const BackwardInstructions& by,
                                            const BackwardPlan& plan) {
    const Tile& tile = cfg.algorithm.tile;
    const GemmTriples& wave = cfg.algorithm.wave;
    const InstructionInfo& third = by.query_gradients;
    const int hdim_q = static_cast<int>(cfg.signature.hdim_q),
              hdim_v = static_cast<int>(cfg.signature.hdim_v);
    const auto whole = [](int extent, int part) { return part > 0 && extent > 0 && extent % part == 0; };
    const int pair = plan.scores.load_matrix ? 2 : 1; // column tiles that one read delivers
    if (wave.m0 != 1 || wave.n0 <= 0 || wave.n0 != wave.m1 || wave.n1 <= 0 || wave.m2 * wave.n2 != plan.waves)
        return PlanProblem::backward_waves;
    if (!whole(tile.n0, wave.n0 * by.keys()) || !whole(tile.n0, plan.query_gradients.depth))
        return PlanProblem::key_tiles;
    if (!whole(tile.m0, by.queries() * pair) || !whole(tile.m0, plan.value_gradients.depth) ||
        !whole(tile.m0, wave.m2 * third.m))
        return PlanProblem::row_tiles;
    if (!whole(hdim_q, plan.scores.depth) || !whole(hdim_v, plan.scores.depth))
        return PlanProblem::first_depth;
    if (!whole(hdim_q, wave.n1 * by.queries() * pair) || !whole(hdim_v, wave.n1 * by.queries() * pair) ||
        !whole(hdim_q, wave.n2 * third.n * pair))
        return PlanProblem::channel_tiles;
    return PlanProblem::none;
}

/// Scores and gradients in registers: tiles of the five products.
constexpr void plan_backward_tiles(const KernelConfig& cfg, const ElementTypes& types,
                                   const BackwardInstructions& by, BackwardPlan& plan) {
    const Tile& tile = cfg.algorithm.tile;
    const GemmTriples& wave = cfg.algorithm.wave;
    const InstructionInfo& third = by.query_gradients;
    const int hdim_q = static_cast<int>(cfg.signature.hdim_q),
              hdim_v = static_cast<int>(cfg.signature.hdim_v);
    const int key_tiles = tile.n0 / wave.n0 / by.keys();
    AccumulatorPlan scores =
        accumulator_plan(by.scores, by.transposed, wave.n0, key_tiles, tile.m0 / by.queries());
    scores.column_waves = wave.n1; // each of them has all of its keys' scores
    scores.loaded = scores.stored = types.bias;
    const auto of_keys = [&](int channels, ElementType stored) {
        AccumulatorPlan acc = accumulator_plan(by.gradients, by.transposed, wave.m1, key_tiles,
                                               channels / wave.n1 / by.queries());
        acc.stored = stored;
        acc.column_waves = wave.n1;
        acc.column_step = narrow(acc.column_tiles * acc.cols);
        return acc;
    };
    AccumulatorPlan dq =
        accumulator_plan(third, false, wave.m2, tile.m0 / wave.m2 / third.m, hdim_q / wave.n2 / third.n);
    dq.column_waves = wave.n2;
    dq.column_step = narrow(dq.column_tiles * dq.cols);
    dq.stored = cfg.algorithm.max_seq_len_q > 0 ? types.q : ElementType::fp32;
    give_tile(plan.scores, scores, hdim_q, hdim_q);
    give_tile(plan.score_gradients, scores, hdim_v, hdim_v);
    give_tile(plan.value_gradients, of_keys(hdim_v, types.v), tile.m0, tile.m0);
    give_tile(plan.key_gradients, of_keys(hdim_q, types.k), tile.m0, tile.m0);
    give_tile(plan.query_gradients, dq, tile.n0, tile.n0);
    plan.score_words = narrow((scores.registers + 1) / 2);
    plan.score_byte_words = narrow((scores.registers + 3) / 4);
    plan_columns(plan, scores);
}

/// The operands of the products: weights and dS made of scores, and both sides of Q, dO and K.
constexpr PlanProblem plan_backward_operands(const KernelConfig& cfg, const ElementTypes& types,
                                             BackwardPlan& plan) {
    const Tile& tile = cfg.algorithm.tile;
    const int hdim_q = static_cast<int>(cfg.signature.hdim_q),
              hdim_v = static_cast<int>(cfg.signature.hdim_v);
    const AccumulatorPlan& scores = plan.scores.acc;
    plan.key.type = plan.value.type = plan.gradients.type = plan.weights.type = types.k;
    const auto columns = [&](OperandPlan& operand, int depth) {
        operand.type = types.k;
        operand.columns = tile.m0;
        operand.depth = operand.step = narrow(depth);
        operand.transposed = operand.stored_by_column = operand.by_column = true;
    };
    const auto depths = [&](OperandPlan& operand, const ProductPlan& product, int depth, int channels) {
        operand.type = types.k;
        operand.columns = narrow(channels);
        operand.depth = operand.step = narrow(depth);
        plan_depth_operand(plan, cfg, product, operand);
    };
    columns(plan.query, hdim_q);
    columns(plan.d_o, hdim_v);
    if (!weights_cover_fragments(scores, plan.value_gradients)) return PlanProblem::weight_keys;
    plan_weights(scores, plan.value_gradients, plan.weights, plan.d_o_depth.order);
    plan.weights.words =
        narrow(scores.row_tiles * plan.value_gradients.depth_fragments * plan.value_gradients.left_fragment);
    plan.query_depth.order = plan.d_o_depth.order;
    plan.key_depth.order = natural_order(plan.query_gradients);
    depths(plan.d_o_depth, plan.value_gradients, tile.m0, hdim_v);
    depths(plan.query_depth, plan.key_gradients, tile.m0, hdim_q);
    depths(plan.key_depth, plan.query_gradients, tile.n0, hdim_q);
    return PlanProblem::none;
}

constexpr GradientLines gradient_lines_of(MatrixUnit unit, ElementType type) {
    if (element_bits(type) == 32) return GradientLines::queries;
    return unit == MatrixUnit::nvidia ? GradientLines::keys : GradientLines::queries_paired;
}

} // namespace planning

/// The plan of a configuration, or the problem with it.
constexpr BackwardPlan backward_plan_of(const KernelConfig& cfg) {
    const ElementTypes types = element_types(cfg.signature.data_type, fp8_flavour(cfg.arch));
    using planning::refused;

    BackwardPlan plan;
    plan.unit = matrix_unit(cfg.arch);
    if (plan.unit == MatrixUnit::none) return refused<BackwardPlan>(PlanProblem::unknown_unit);
    const planning::BackwardInstructions by = planning::backward_instructions_of(cfg, types, plan.unit);
    if (const auto problem = planning::plan_five_products(cfg, types, by, plan); problem != PlanProblem::none)
        return refused<BackwardPlan>(problem);
    if (const auto problem = planning::backward_tile_problem(cfg, by, plan); problem != PlanProblem::none)
        return refused<BackwardPlan>(problem);
    planning::plan_backward_tiles(cfg, types, by, plan);
    if (const auto problem = planning::plan_backward_operands(cfg, types, plan); problem != PlanProblem::none)
        return refused<BackwardPlan>(problem);
    plan.gradient_lines = planning::gradient_lines_of(plan.unit, types.k);
    if (plan.unit == MatrixUnit::nvidia) plan.staging.async = AsyncCopies::tiles;
    plan.halves_differ = plan.unit == MatrixUnit::nvidia;
    if (!planning::plan_backward_memory(plan, cfg)) plan.problem = PlanProblem::lds;
    return plan;
}

} // namespace fmha::hip_target
