#pragma once

#include "kernels/targets/hip/plan_types.hpp"

#include <cstdint>

/// Operands and accumulators of the two products, and how the second one's follow from the first one's.
namespace fmha::hip_target::planning {

/// `parts` instructions deep. Where a lane's elements are consecutive in depth they stay so over all parts, which
/// permutes depth equally on both sides; otherwise the parts follow one another.
constexpr Axis deepen(Axis axis, int elements, int depth, int parts, bool consecutive) {
    if (parts == 1) return axis;
    int bit = 0;
    while ((1 << bit) < elements) ++bit;
    int weight = consecutive ? elements : depth;
    for (int part = 1; part < parts; part *= 2, ++bit, weight *= 2)
        axis.reg[bit] = static_cast<std::int8_t>(weight);
    if (consecutive)
        for (std::int8_t& lane : axis.lane) lane = static_cast<std::int8_t>(lane * parts);
    return axis;
}

/// How many registers from an even start advance by one along `axis`, and stay where they are along `other`.
constexpr std::int8_t consecutive(const Axis& axis, int registers, const Axis& other = {}) {
    int count = 1;
    for (int bit = 0; (1 << bit) < registers && axis.reg[bit] == count && other.reg[bit] == 0; ++bit)
        count *= 2;
    return static_cast<std::int8_t>(count);
}

constexpr ProductPlan product_plan(const InstructionInfo& info, int k, bool transposed) {
    ProductPlan p;
    if (info.k == 0 || k % info.k != 0) return p;
    const int parts = k / info.k;
    const int bits = element_bits(info.operand);
    p.instruction = info.instruction;
    p.parts = static_cast<std::int16_t>(parts);
    p.depth = static_cast<std::int16_t>(k);
    p.rows = transposed ? info.n : info.m;
    p.cols = transposed ? info.m : info.n;
    p.copies = info.copies;
    const int left = transposed ? info.b_elements : info.a_elements;
    const int right = transposed ? info.a_elements : info.b_elements;
    p.left_elements = static_cast<std::int16_t>(left * parts);
    p.right_elements = static_cast<std::int16_t>(right * parts);
    p.left_words = static_cast<std::int16_t>(p.left_elements * bits / 32);
    p.right_words = static_cast<std::int16_t>(p.right_elements * bits / 32);
    p.acc_registers = info.c_elements;
    p.left_outer = transposed ? info.b_col : info.a_row;
    p.right_outer = transposed ? info.a_row : info.b_col;
    p.acc_row = transposed ? info.c_col : info.c_row;
    p.acc_col = transposed ? info.c_row : info.c_col;
    for (int r = 0; r < p.acc_registers; ++r) {
        p.row_of_register[r] = static_cast<std::int8_t>(p.acc_row.of_reg(r));
        p.col_of_register[r] = static_cast<std::int8_t>(p.acc_col.of_reg(r));
    }
    p.left_k = deepen(transposed ? info.b_k : info.a_k, left, info.k, parts, transposed);
    p.right_k = deepen(transposed ? info.a_k : info.b_k, right, info.k, parts, transposed);
    p.left_consecutive = consecutive(p.left_k, p.left_elements, p.left_outer);
    p.right_consecutive = consecutive(p.right_k, p.right_elements);
    p.acc_consecutive = consecutive(p.acc_col, p.acc_registers);
    const int scales = info.scale_block != 0 ? 1 : 0;
    p.left_fragment = static_cast<std::int16_t>(p.left_words + scales);
    p.right_fragment = static_cast<std::int16_t>(p.right_words + scales);
    p.scale_block = info.scale_block;
    p.left_scale = transposed ? info.b_scale : info.a_scale;
    p.right_scale = transposed ? info.a_scale : info.b_scale;
    return p;
}

/// The elements of one operand fragment that a lane has, without the lane's own part.
struct LaneElements {
    int count = 0;
    std::int16_t row[32] = {}, key[32] = {};

    /// How many elements of the same row have smaller keys.
    constexpr int rank(int element) const {
        int smaller = 0;
        for (int other = 0; other < count; ++other)
            if (row[other] == row[element] && key[other] < key[element]) ++smaller;
        return smaller;
    }
};
/// The accumulators of the first product that become a fragment of `count` weights a lane.
constexpr LaneElements accumulators(const ProductPlan& scores, int count) {
    LaneElements out{count, {}, {}};
    for (int x = 0; x < count; ++x) {
        const int tile = x / scores.acc_registers, r = x % scores.acc_registers;
        out.row[x] = scores.row_of_register[r];
        out.key[x] = static_cast<std::int16_t>(tile * scores.cols + scores.col_of_register[r]);
    }
    return out;
}

/// Finds the lane bits that number blocks of keys for a scaled instruction, but stand for keys within a block in the
/// accumulators, and the element bits that hold those blocks.
constexpr void plan_weight_swaps(BlockPlan& plan) {
    const ProductPlan& second = plan.second;
    for (int bit = 0; bit < 6; ++bit) {
        const std::int8_t block = second.left_k.lane[bit];
        std::int8_t& own = plan.value_key_lane.lane[bit];
        if (block < second.scale_block || own == block) continue;
        for (int e = 1, element_bit = 0; e < second.right_elements; e *= 2, ++element_bit) {
            if (plan.value_key[e] != block) continue;
            plan.weight_swaps[plan.weight_swap_count++] = {static_cast<std::int8_t>(bit),
                                                           static_cast<std::int8_t>(element_bit)};
            for (int with = 0; with < second.right_elements; ++with)
                if ((with >> element_bit & 1) != 0)
                    plan.value_key[with] = static_cast<std::int16_t>(plan.value_key[with] - block + own);
            own = block;
            break;
        }
    }
}

/// Whether every lane and element of a scaled second product lies in the block of keys whose scale the instruction
/// applies to it, where words are what lanes can exchange; and whether a lane has weights and scales of the same row.
constexpr bool weights_keep_blocks(const BlockPlan& plan) {
    const ProductPlan& p = plan.second;
    if (p.scale_block == 0) return true;
    for (int lane = 0; lane < plan.wave_size; ++lane) {
        for (int e = 0; e < p.right_elements; ++e)
            if ((plan.value_key[e] + plan.value_key_lane.of_lane(lane)) / p.scale_block !=
                p.right_k.at(lane, e) / p.scale_block)
                return false;
        if (p.left_scale.outer.of_lane(lane) != plan.first.acc_row.of_lane(lane)) return false;
    }
    for (const std::int8_t weight : plan.first.acc_row.reg)
        if (weight != 0) return false;
    for (int i = 0; i < plan.weight_swap_count; ++i)
        if (element_bits(plan.type_p) << plan.weight_swaps[i].element_bit < 32) return false;
    return true;
}

/// Fills in how the second product's operands follow from the first product's accumulators.
constexpr void plan_weights(BlockPlan& plan) {
    const ProductPlan& scores = plan.first;
    const ProductPlan& second = plan.second;
    const int own = second.left_elements / second.copies;
    if (second.copies == 1) {
        const LaneElements weights = accumulators(scores, own);
        LaneElements operand{own, {}, {}};
        for (int e = 0; e < own; ++e) {
            operand.row[e] = static_cast<std::int16_t>(second.left_outer.of_reg(e));
            operand.key[e] = static_cast<std::int16_t>(second.left_k.of_reg(e));
        }
        for (int x = 0; x < own; ++x) {
            const int before = weights.rank(x);
            for (int e = 0; e < own; ++e)
                if (operand.row[e] == weights.row[x] && operand.rank(e) == before)
                    plan.weight_source[e] = static_cast<std::int16_t>(x);
        }
        for (int e = 0; e < second.right_elements; ++e) {
            const int k = second.right_k.of_reg(e);
            for (int left = 0; left < own; ++left)
                if (operand.row[left] == 0 && operand.key[left] == k)
                    plan.value_key[e] = weights.key[plan.weight_source[left]];
        }
        plan.value_key_lane = scores.acc_col;
        for (std::int8_t& weight : plan.value_key_lane.reg) weight = 0;
        if (second.scale_block != 0) plan_weight_swaps(plan);
    } else {
        // Both half-waves hold all keys, in their natural order; `narrow` exchanges them.
        for (int e = 0; e < second.left_elements; ++e) {
            plan.weight_source[e] = static_cast<std::int16_t>(e);
            plan.value_key[e] = static_cast<std::int16_t>(e);
        }
    }
    for (int bit = 0; (1 << bit) < second.depth; ++bit) {
        plan.key_place[bit] = static_cast<std::int16_t>(1 << bit);
        if (plan.load_matrix) continue;
        for (int e = 1; e < second.right_elements; e *= 2)
            if (plan.value_key[e] == 1 << bit) plan.key_place[bit] = static_cast<std::int16_t>(e);
        int group = second.right_elements;
        for (const std::int8_t weight : plan.value_key_lane.lane) {
            if (weight == 1 << bit) plan.key_place[bit] = static_cast<std::int16_t>(group);
            if (weight != 0) group *= 2;
        }
    }
}

/// Whether the accumulator registers that become one operand fragment of the second product hold exactly the
/// fragment's keys, so that fragments follow one another as steps of keys do.
constexpr bool weights_cover_fragments(const BlockPlan& plan) {
    const LaneElements weights = accumulators(plan.first, plan.second.left_elements / plan.second.copies);
    int last = 0;
    for (int x = 0; x < weights.count; ++x) last = weights.key[x] > last ? weights.key[x] : last;
    for (const std::int8_t weight : plan.first.acc_col.lane) last += weight;
    return last == plan.second.depth - 1;
}

} // namespace fmha::hip_target::planning
