#pragma once

#include "dispatcher/types/element_type.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/kernel_values.hpp"
#include "kernels/programs/matrix.hpp"
#include "kernels/targets/hip/plan_products.hpp"
#include "kernels/targets/hip/plan_staging.hpp"

#include <cstdint>

/// Everything that follows from a configuration before a block runs: the holder of every element, the places
/// in LDS, how many registers a thread needs. A constant on a device, a value on the host.
namespace fmha::hip_target {

namespace planning {

/// The matrix instructions of a configuration.
struct Instructions {
    InstructionInfo first, second;
    int first_depth = 0, second_depth = 0; ///< of fragments
    bool transposed = false;               ///< AMD's products are computed so

    constexpr int rows() const { return transposed ? first.n : first.m; }
    constexpr int cols() const { return transposed ? first.m : first.n; }
};

constexpr Instructions instructions_of(const KernelConfig& cfg, const ElementTypes& types, MatrixUnit unit) {
    const GemmTriples& warp = cfg.algorithm.warp;
    const bool scaled = cfg.signature.qscale == QScale::mx;
    const Tile& tile = cfg.algorithm.tile;
    const int first = depth_of_triple(unit, types.k, warp.m0, warp.k0, tile.k0, tile.k0max),
              second = depth_of_triple(unit, types.v, warp.m1, warp.k1, tile.k1, tile.n0);
    return {instruction_info(instruction_for(unit, types.k, warp.m0, warp.n0, first, scaled)),
            instruction_info(instruction_for(unit, types.v, warp.m1, warp.n1, second, scaled)), first, second,
            unit != MatrixUnit::nvidia};
}

/// Both products, and the threads that compute them.
constexpr PlanProblem plan_both_products(const KernelConfig& cfg, const ElementTypes& types,
                                         const Instructions& by, BlockPlan& plan) {
    const auto& [first, second, first_depth, second_depth, transposed] = by;
    if (first.k == 0 || second.k == 0) return PlanProblem::no_instruction;
    if (first.m != second.m || first.n != second.n) return PlanProblem::different_shapes;
    if (types.q != types.k || types.p != types.v) return PlanProblem::mixed_operands;
    plan.first = product_plan(first, first_depth, transposed);
    plan.second = product_plan(second, second_depth, transposed);
    const bool in_parts = plan.first.parts != 1 || plan.second.parts != 1;
    if (plan.first.left_elements > 32 || plan.second.left_elements > 32 ||
        (cfg.signature.qscale == QScale::mx && in_parts))
        return PlanProblem::no_instruction;
    plan.first.load_matrix = plan.second.load_matrix =
        plan.unit == MatrixUnit::nvidia && element_bits(types.v) == 16;
    plan.second.own_factor =
        cfg.signature.qscale == QScale::blockscale || cfg.signature.qscale == QScale::kv_blockscale;
    plan.wave_size = first.wave_size;
    plan.key_waves = cfg.algorithm.wave.n0;
    plan.waves = static_cast<std::int16_t>(cfg.algorithm.wave.m0 * plan.key_waves);
    plan.threads = static_cast<std::int16_t>(plan.waves * plan.wave_size);
    return PlanProblem::none;
}

/// Whether the waves of a block may have keys of their own: those that store splits alone, where no sink logit stands in a row's total,
/// and of V by row, whose lines are keys as those of K are.
constexpr bool has_key_waves(const KernelConfig& cfg, const BlockPlan& plan) {
    const GemmTriples& wave = cfg.algorithm.wave;
    return traits_of(cfg.signature.family).stores_splits && plan.second.load_matrix && wave.m0 == 1 &&
           wave.n0 == wave.k1 && cfg.algorithm.tile.k1 == cfg.algorithm.tile.n0 &&
           cfg.signature.v_layout == VLayout::row;
}

/// Whether the tile is of whole instructions.
constexpr PlanProblem tile_problem(const KernelConfig& cfg, const Instructions& by, const BlockPlan& plan) {
    const Tile& tile = cfg.algorithm.tile;
    const auto whole = [](int extent, int part) { return part > 0 && extent > 0 && extent % part == 0; };
    const GemmTriples& wave = cfg.algorithm.wave;
    if (wave.n1 != 1 || (wave.n0 != 1 && !has_key_waves(cfg, plan))) return PlanProblem::waves_along_keys;
    if (!whole(tile.m0, wave.m0 * by.rows())) return PlanProblem::row_tiles;
    if (!whole(tile.n0, wave.n0 * by.cols())) return PlanProblem::key_tiles;
    // Where instructions are deeper than the triples, `depth_of_triple` has seen to it that tiles are of whole ones.
    const GemmTriples& warp = cfg.algorithm.warp;
    if (!whole(tile.k0, warp.k0) || !whole(tile.k0max, tile.k0)) return PlanProblem::first_depth;
    if (!whole(tile.k1, wave.n0 * warp.k1) || !whole(tile.n0, tile.k1)) return PlanProblem::second_depth;
    if (!whole(tile.n1, wave.n0 * by.cols())) return PlanProblem::channel_tiles;
    return PlanProblem::none;
}

/// Keys and values as right operands.
constexpr void plan_right_operands(const KernelConfig& cfg, const ElementTypes& types, BlockPlan& plan) {
    const Tile& tile = cfg.algorithm.tile;
    plan.key.type = types.k;
    plan.key.columns = tile.n0;
    plan.key.depth = tile.k0max;
    const auto give_step = [](OperandPlan& operand, int step, const ProductPlan& product) {
        operand.step = narrow(product.joins_steps ? product.depth : step);
        operand.joins_steps = product.joins_steps;
    };
    give_step(plan.key, tile.k0, plan.first);
    plan.key.transposed = plan.key.stored_by_column = plan.key.by_column = true;
    plan.value.type = types.v;
    plan.value.columns = tile.n1;
    plan.value.depth = tile.n0;
    give_step(plan.value, tile.k1, plan.second);
    // A tile of a linear page that holds whole tiles lies like one of any other matrix. Kernels of RDNA have not been audited with that;
    // those of 256 channels of CDNA 2 and 3 would spill.
    const bool older_cdna = plan.unit == MatrixUnit::cdna2 || plan.unit == MatrixUnit::cdna3;
    const bool cdna = is_cdna(plan.unit);
    const bool as_others = (cdna || plan.unit == MatrixUnit::nvidia) && !(older_cdna && tile.n1 > 128) &&
                           cfg.signature.kv_layout == KvLayout::linear &&
                           cfg.signature.page_size % tile.n0 == 0;
    plan.staging.gathers = api_traits_of(cfg.signature.family).lists_pages && !as_others;
    const bool small_pages = cfg.signature.page_size % tile.n0 != 0;
    plan.staging.pages_ahead = cdna && plan.staging.gathers && small_pages;
    // Those of 16 bits in large pages have no scalar registers for another buffer's descriptor with 256 channels.
    plan.staging.gathers_steps = plan.staging.pages_ahead || (cdna && plan.staging.gathers &&
                                                              (element_bits(types.k) == 8 || tile.n1 <= 128));
    // Waves copy as many as they have lanes.
    const auto whole_waves = [&](std::int64_t slots) {
        return narrow((static_cast<int>(slots) + plan.wave_size - 1) / plan.wave_size * plan.wave_size);
    };
    if (plan.staging.pages_ahead) plan.staging.page_slots = whole_waves(tile.n0 / cfg.signature.page_size);
    const AccumulatorPlan& scores = plan.first.acc;
    if (cdna && plan.unit != MatrixUnit::cdna2 && cfg.signature.qscale == QScale::per_token_head &&
        scores.run == StagingPlan::descale_run && scores.column_waves == 1)
        plan.staging.descale_slots = whole_waves(tile.n0);
    // Vectors of the vectorized layout of V are slots of one channel (B-3).
    plan.value.stored_by_column =
        cfg.signature.v_layout == VLayout::column || cfg.signature.kv_layout == KvLayout::vectorized;
    const kernels::Granules granules = kernels::Granules::of(cfg);
    plan.key.whole_lines = granules.hdim_q % tile.k0max == 0;
    plan.query.whole_lines = plan.key.whole_lines;
    plan.value.whole_lines = !plan.value.stored_by_column && granules.hdim_v % tile.n1 == 0;
}

/// How far maxima may lag behind. A large output is then hardly ever rescaled after the first tiles; without a branch around that nothing is
/// gained. Weights of up to 256 cost types of 16 bits no accuracy, and those of 8 bits have no room above 1.
constexpr float slack_of(MatrixUnit unit, ElementType weights, const AccumulatorPlan& output) {
    return unit != MatrixUnit::nvidia && output.skips_ones && element_bits(weights) >= 16 ? 8.0F : 0.0F;
}

/// Whether lanes exchange sums of rows once, in the end. Their additions, for which nothing waits, then stand beside the products of values, and their
/// addends stay in registers until there. By the loop model that pays where products are many and registers left; exchanges of CDNA 4 are
/// vector instructions, and NVIDIA's full kernels would spill.
constexpr bool keeps_parts(MatrixUnit unit, const AccumulatorPlan& output, bool has_dropout) {
    constexpr int many = 64, full = 128;
    switch (unit) {
    case MatrixUnit::cdna2:
    case MatrixUnit::cdna3:
        return output.registers >= many && output.registers < full && !has_dropout;
    case MatrixUnit::rdna3:
        return output.registers >= full;
    case MatrixUnit::rdna4:
        return output.registers >= full &&
               !has_dropout; // random numbers take the registers: 60 bytes of scratch
    default:
        return false;
    }
}

/// P as the left operand of the second product: scores of the first one.
constexpr PlanProblem plan_left_weights(const KernelConfig& cfg, const ElementTypes& types,
                                        const AccumulatorPlan& scores, int row_tiles, BlockPlan& plan) {
    plan.weights.type = types.p;
    plan.weights.words =
        static_cast<std::int16_t>(row_tiles * plan.second.depth_fragments * plan.second.left_fragment);
    if (!weights_cover_fragments(scores, plan.second)) return PlanProblem::weight_keys;
    plan_weights(scores, plan.second, plan.weights, plan.value.order);
    if (!weights_keep_blocks(scores, plan.second, plan.weights, plan.value.order, plan.wave_size))
        return PlanProblem::weight_blocks;
    if (cfg.signature.qscale == QScale::mx) plan_scales(plan);
    return PlanProblem::none;
}

/// Where the query stays, and the LDS of everything.
constexpr void plan_query_and_memory(const KernelConfig& cfg, const ElementTypes& types, int row_tiles,
                                     BlockPlan& plan) {
    plan.query.type = types.q;
    const int query_words = row_tiles * plan.first.depth_fragments * plan.first.left_fragment;
    // Block scales add a part of the product and much scalar state to a full file.
    const bool crowded = plan.second.own_factor && plan.second.acc.registers >= 128;
    // Scaled queries stay in registers, where their scales are.
    const bool in_registers =
        plan.unit != MatrixUnit::nvidia && !crowded &&
        (cfg.signature.qscale == QScale::mx || query_words <= query_register_limit(plan.unit));
    plan.query.place = in_registers ? OperandPlace::registers : OperandPlace::lds;
    plan.query.words = static_cast<std::int16_t>(in_registers ? query_words : 1);
    bool fits = plan_staging(plan, cfg);
    if (!in_registers && plan.unit != MatrixUnit::nvidia && (!fits || leaves_few_waves(plan))) {
        plan.query.place = OperandPlace::memory;
        plan.first.left_registers = narrow(plan.first.step_fragments * plan.first.left_registers);
        fits = plan_staging(plan, cfg);
    }
    if (!fits) plan.problem = PlanProblem::lds;
}

} // namespace planning

/// The plan of a configuration, or the problem with it.
constexpr BlockPlan plan_of(const KernelConfig& cfg) {
    const Tile& tile = cfg.algorithm.tile;
    const ElementTypes types = element_types(cfg.signature.data_type, fp8_flavour(cfg.arch));
    using planning::refused;

    BlockPlan plan;
    plan.unit = matrix_unit(cfg.arch);
    if (plan.unit == MatrixUnit::none) return refused<BlockPlan>(PlanProblem::unknown_unit);
    // Copies to LDS alone find the rows of the next head.
    plan.staging.takes_heads =
        api_traits_of(cfg.signature.family).reads_cache && kernels::HeadRows::serve_tokens(cfg);
    if (plan.unit != MatrixUnit::nvidia && plan.staging.takes_heads)
        return refused<BlockPlan>(PlanProblem::rows_of_heads);
    const planning::Instructions by = planning::instructions_of(cfg, types, plan.unit);
    if (const auto problem = planning::plan_both_products(cfg, types, by, plan); problem != PlanProblem::none)
        return refused<BlockPlan>(problem);
    if (const auto problem = planning::tile_problem(cfg, by, plan); problem != PlanProblem::none)
        return refused<BlockPlan>(problem);

    const int row_waves = plan.waves / plan.key_waves, row_tiles = tile.m0 / row_waves / by.rows();
    AccumulatorPlan scores = planning::accumulator_plan(by.first, by.transposed, row_waves, row_tiles,
                                                        tile.n0 / plan.key_waves / by.cols());
    AccumulatorPlan output =
        planning::accumulator_plan(by.second, by.transposed, row_waves, row_tiles, tile.n1 / by.cols());
    scores.loaded = types.bias;
    output.stored = traits_of(cfg.signature.family).stores_splits ? ElementType::fp32 : types.o;
    output.skips_ones = plan.unit == MatrixUnit::nvidia ? output.registers > scores.registers
                                                        : output.registers >= scores.registers;
    plan.joined = planning::part_of_columns(output, plan.key_waves);
    if (plan.key_waves > 1) {
        scores.column_waves = output.column_waves = plan.key_waves;
        scores.column_step = plan.second.depth_step = planning::narrow(tile.n0 / plan.key_waves);
    }
    planning::give_tile(plan.first, scores, tile.k0max, tile.k0);
    plan.first.from_zero = true;
    planning::give_tile(plan.second, output, tile.n0 / plan.key_waves, tile.k1 / plan.key_waves);
    plan.rows = planning::row_plan(scores);
    plan.rows.several_heads = plan.staging.takes_heads;
    if (plan.key_waves > 1) plan.rows.wave_rows = 0;
    planning::plan_right_operands(cfg, types, plan);
    plan.staging.line_waves = plan.key_waves;
    if (const auto problem = planning::plan_left_weights(cfg, types, scores, row_tiles, plan);
        problem != PlanProblem::none)
        return refused<BlockPlan>(problem);
    plan.rows.biases_ahead = planning::asks_biases_ahead(plan, cfg.signature);
    plan.rows.stores_anew = planning::stores_anew(plan, cfg.signature);
    plan.rows.sums_in_parts = planning::keeps_parts(plan.unit, output, cfg.signature.has_dropout);
    plan.weights.slack = planning::slack_of(plan.unit, types.p, output);
    planning::plan_query_and_memory(cfg, types, row_tiles, plan);
    planning::plan_places(plan, cfg);
    planning::plan_read_ahead(plan, cfg);
    planning::plan_wave_alone(plan);
    planning::plan_shared_simd(plan, cfg);
    return plan;
}

} // namespace fmha::hip_target
