#pragma once

#include "dispatcher/types/element_type.hpp"
#include "dispatcher/types/kernel_values.hpp"
#include "kernels/targets/hip/backward_plan_types.hpp"
#include "kernels/targets/hip/plan_staging.hpp"

namespace fmha::hip_target::planning {

/// Where K, V and the keys of dQ live while queries stream past.
struct BackwardPlaces {
    OperandPlace key, value;
    bool key_depth_in_registers;
    bool two_stages = false;  ///< of everything that comes with a tile of queries, and of dS
    bool reads_ahead = false; ///< the next tile of queries comes to registers while this one is worked on
};

constexpr Image image_of(const OperandPlan& operand) {
    return operand.by_column ? Image::padded(operand.columns, operand.step, operand.type)
                             : Image::padded(operand.step, operand.columns, operand.type);
}

/// The most keys of a tile whose fragments come to the registers of dQ's keys one by one. The loop over those of 256 keys of 16 bits is too
/// long to be unrolled in time, so that the registers would get places in memory: all of them come at once.
constexpr int most_keys_one_by_one = 192;

/// Gives everything of a block its place in LDS, one after another.
struct BackwardLds {
    BackwardPlan& plan;
    const KernelConfig& cfg;
    const BackwardPlaces& places;
    int next = 0; ///< the first byte that nobody has

    constexpr Image put(Image image) {
        image.offset = next;
        next += image.bytes();
        return image;
    }
    /// K as the left operand of scores, or V as that of dP.
    constexpr void put_left(LeftOperandPlan& kept, const ProductPlan& product, OperandPlace place) {
        kept.place = place;
        kept.words = narrow(place == OperandPlace::registers
                                ? product.acc.row_tiles * product.depth_fragments * product.left_fragment
                                : 1);
        kept.image = {};
        if (place == OperandPlace::lds)
            kept.image =
                put(Image::padded(cfg.algorithm.tile.n0, product.depth_fragments * product.depth, kept.type));
    }
    constexpr void put_keys_of_dq() {
        const ProductPlan& last = plan.query_gradients;
        plan.key_depth_in_registers = places.key_depth_in_registers;
        plan.key_depth_words = narrow(places.key_depth_in_registers
                                          ? last.acc.column_tiles * last.depth_fragments * last.right_fragment
                                          : 1);
        const bool one_by_one =
            places.key_depth_in_registers && cfg.algorithm.tile.n0 <= most_keys_one_by_one;
        plan.key_depth.step = narrow(one_by_one ? last.depth : cfg.algorithm.tile.n0);
        const bool as_key = !plan.key_depth.by_column && places.key == OperandPlace::lds;
        if (!places.key_depth_in_registers)
            plan.key_depth.image = as_key ? plan.key.image : put(image_of(plan.key_depth));
    }
    /// Those that pass through on their way to registers, before queries come: over what begins at `first`.
    constexpr void put_passing_keys(int first) {
        if (!places.key_depth_in_registers) return;
        plan.key_depth.image = image_of(plan.key_depth);
        plan.key_depth.image.offset = first;
        const int end = first + plan.key_depth.image.bytes();
        next = next > end ? next : end;
    }
    /// Q or dO, whose channels are columns of one product and whose queries are the depth of another.
    constexpr void put_queries(OperandPlan& columns, OperandPlan& depth) {
        columns.image = put(image_of(columns));
        // A line is a query with its channels either way.
        depth.image = depth.by_column ? put(image_of(depth)) : columns.image;
        columns.stage = depth.stage = 0;
        if (!places.two_stages) return;
        columns.stage = depth.stage = next - columns.image.offset;
        next += columns.stage;
    }
    /// LSE and D.
    constexpr void put_rows() {
        for (StreamedRowsPlan* rows : {&plan.normalisers, &plan.deltas}) {
            *rows = {};
            if (!places.two_stages && !places.reads_ahead) continue;
            *rows = {next, 4 * cfg.algorithm.tile.m0};
            next += 2 * rows->stage;
        }
    }
    constexpr void put_gradients() {
        const Tile& tile = cfg.algorithm.tile;
        const bool by_key = plan.gradient_lines == GradientLines::keys;
        plan.gradients.place = OperandPlace::lds;
        plan.gradients.image = put(by_key ? Image::padded(tile.n0, tile.m0, plan.gradients.type)
                                          : Image::padded(tile.m0, tile.n0, plan.gradients.type));
        const bool two_stages = by_key || (places.two_stages && plan.unit != MatrixUnit::nvidia);
        plan.gradient_stage = two_stages ? plan.gradients.image.bytes() : 0;
        next += plan.gradient_stage;
    }
    constexpr void put_random_bytes() {
        const Tile& tile = cfg.algorithm.tile;
        plan.random = {};
        if (cfg.signature.has_dropout && !cfg.signature.is_store_randval)
            plan.random =
                put(Image::padded(tile.n0 * plan.scores.acc.column_waves, tile.m0, ElementType::uint8));
    }
};

/// Where everything lies with K, V and the keys of dQ at such places, and how much LDS that takes.
constexpr void plan_backward_lds(BackwardPlan& plan, const KernelConfig& cfg, const BackwardPlaces& places) {
    BackwardLds lds{plan, cfg, places};
    lds.put_left(plan.key, plan.scores, places.key);
    lds.put_left(plan.value, plan.score_gradients, places.value);
    lds.put_keys_of_dq();
    const int first_of_queries = lds.next;
    lds.put_queries(plan.query, plan.query_depth);
    lds.put_queries(plan.d_o, plan.d_o_depth);
    lds.put_rows();
    lds.put_gradients();
    lds.put_random_bytes();
    lds.put_passing_keys(first_of_queries);
    plan.lds_bytes = lds.next;
}

/// Registers of accumulators and kept operands that leave room for the rest.
constexpr int backward_register_limit(MatrixUnit unit) {
    return unit == MatrixUnit::nvidia ? 1024 : is_rdna(unit) ? 190 : 400;
}

/// The registers of accumulators and kept operands.
constexpr int kept_registers(const BackwardPlan& plan) {
    return plan.value_gradients.acc.registers + plan.key_gradients.acc.registers +
           2 * plan.scores.acc.registers + plan.query_gradients.acc.registers + plan.key.words +
           plan.value.words + plan.key_depth_words;
}

/// Whether accumulators and kept operands leave a wave of CDNA few of its 512 registers.
constexpr bool is_nearly_full(const BackwardPlan& plan) {
    return kept_registers(plan) > 280;
}

/// Whether a wave of fp32 that is nearly full makes random bytes of its own, and partial sums of dQ.
constexpr bool is_crowded(const BackwardPlan& plan, const KernelConfig& cfg) {
    const Signature& has = cfg.signature;
    return is_nearly_full(plan) && plan.query.type == ElementType::fp32 && has.is_deterministic &&
           has.has_dropout && !has.is_store_randval;
}

/// Where registers, of which `ahead` hold what comes next, or LDS let a SIMD hold one wave, which then has registers to spare: K and V go to
/// those that ordinary arithmetic does not use, and fragments are read ahead of their products, which CDNA 4 ends twice as fast.
constexpr void plan_backward_alone(BackwardPlan& plan, const KernelConfig& cfg, int ahead) {
    if (kept_registers(plan) + ahead < 256 && 2 * plan.lds_bytes <= lds_limit(plan.unit)) return;
    plan.key.parked = plan.value.parked = true;
    for (ProductPlan* p : {&plan.scores, &plan.score_gradients, &plan.value_gradients, &plan.key_gradients}) {
        p->reads_ahead = plan.unit == MatrixUnit::cdna4 && !is_crowded(plan, cfg) ? 4 : 2;
        p->right_registers = narrow((1 + p->reads_ahead) * p->right_fragment);
    }
    ProductPlan& last = plan.query_gradients;
    if (plan.key_depth_in_registers) last.left_registers = narrow(last.depth_fragments * last.left_registers);
}

/// Whether a wave has registers for the place of a head's dQ: not one of CDNA 4 that is nearly full, with fp32 or where a head has all other
/// places too, nor one of CDNA 2 and 3 that is crowded.
constexpr bool has_room_for_place(const BackwardPlan& plan, const KernelConfig& cfg) {
    const Signature& has = cfg.signature;
    const bool all_places = has.has_dbias && has.is_store_randval && has.is_deterministic;
    if (plan.unit != MatrixUnit::cdna4) return !is_crowded(plan, cfg);
    return !is_nearly_full(plan) || (plan.query.type != ElementType::fp32 && !all_places);
}

/// CDNA reads the next tile of queries into registers while it works on this one: a wave has its SIMD for itself, or nearly so, and
/// nobody works while it waits. Patches are such that every thread has one.
constexpr void plan_queries_ahead(BackwardPlan& plan, const KernelConfig& cfg) {
    int words = 1;
    for (OperandPlan* operand : {&plan.query, &plan.query_depth, &plan.d_o, &plan.d_o_depth}) {
        const bool turned = operand->by_column && !operand->stored_by_column; // in patches of four lines
        if (turned) plan_patches(plan, *operand);
        const int units = operand->depth * operand->columns * element_bits(operand->type) / 128;
        const int count = turned ? patches(*operand, operand->patch_line) : units;
        const int rounds = (count + plan.threads - 1) / plan.threads;
        const int taken = (turned ? 4 * operand->patch_line : 4) * rounds;
        if (taken > words) words = taken;
    }
    plan.staging.ahead_words = narrow(words);
    plan_backward_alone(plan, cfg, 4 * words);
    plan.staging.read_ahead = plan.staging.keeps_places = plan.staging.lanes_find_lines = true;
    plan.keeps_place = has_room_for_place(plan, cfg);
}

/// Chooses places. Returns false when nothing fits LDS.
constexpr bool plan_backward_memory(BackwardPlan& plan, const KernelConfig& cfg) {
    using enum OperandPlace;
    constexpr BackwardPlaces on_nvidia[] = {{lds, lds, false, true}};
    constexpr BackwardPlaces on_cdna[] = {{registers, registers, true, true, true},
                                          {registers, registers, false, true, true},
                                          {registers, registers, true, false, true},
                                          {registers, registers, false, false, true}};
    constexpr BackwardPlaces on_rdna[] = {
        {registers, registers, false}, {lds, lds, false},     {lds, registers, false},
        {registers, lds, false},       {lds, lds, true},      {lds, memory, false},
        {memory, memory, false},       {memory, memory, true}};
    const auto fits = [&](const BackwardPlaces& places) {
        plan_backward_lds(plan, cfg, places);
        return plan.lds_bytes <= lds_limit(plan.unit);
    };
    const auto first_of = [&](const auto& list) {
        for (const BackwardPlaces& places : list) {
            if (fits(places) && kept_registers(plan) <= backward_register_limit(plan.unit)) return true;
        }
        return fits(list[sizeof(list) / sizeof(list[0]) - 1]);
    };
    if (plan.unit == MatrixUnit::nvidia) return first_of(on_nvidia);
    if (is_rdna(plan.unit)) return first_of(on_rdna);
    if (!first_of(on_cdna)) return false;
    // Another wave hides more than a second stage does, where registers have room for it and LDS has not.
    constexpr int few = 128;
    const auto holds_two = [&] { return 2 * plan.lds_bytes <= lds_limit(plan.unit); };
    if (kept_registers(plan) <= few && !holds_two()) {
        plan_backward_lds(plan, cfg, {registers, registers, true, false, true});
        if (!holds_two()) first_of(on_cdna);
    }
    // … or than the keys of dQ in registers, which are the last that a second wave lacks where CDNA 4 has 64 channels.
    constexpr int nearly_half = 160;
    if (plan.unit == MatrixUnit::cdna4 && kept_registers(plan) > few && kept_registers(plan) <= nearly_half) {
        plan_backward_lds(plan, cfg, {registers, registers, false, true, true});
        if (!holds_two()) first_of(on_cdna);
    }
    plan_queries_ahead(plan, cfg);
    return true;
}

} // namespace fmha::hip_target::planning
