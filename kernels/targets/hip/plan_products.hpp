#pragma once

#include "kernels/targets/hip/plan_types.hpp"

#include <cstdint>

/// Operands and accumulators of products, and how the operands of one follow from the accumulators of another.
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

/// A tile of `row_tiles` × `column_tiles` fragments a wave, whose registers hold elements as `info` says.
constexpr AccumulatorPlan accumulator_plan(const InstructionInfo& info, bool transposed, int waves,
                                           int row_tiles, int column_tiles) {
    AccumulatorPlan acc;
    acc.rows = transposed ? info.n : info.m;
    acc.cols = transposed ? info.m : info.n;
    acc.fragment = info.c_elements;
    acc.row_tiles = narrow(row_tiles);
    acc.column_tiles = narrow(column_tiles);
    acc.registers = narrow(row_tiles * column_tiles * acc.fragment);
    acc.wave_rows = narrow(row_tiles * acc.rows);
    acc.block_rows = narrow(waves * acc.wave_rows);
    acc.row = transposed ? info.c_col : info.c_row;
    acc.col = transposed ? info.c_row : info.c_col;
    for (int r = 0; r < acc.fragment; ++r) {
        acc.row_of_register[r] = static_cast<std::int8_t>(acc.row.of_reg(r));
        acc.col_of_register[r] = static_cast<std::int8_t>(acc.col.of_reg(r));
    }
    for (int bit = 0; (1 << bit) < info.wave_size; ++bit)
        if (acc.row.lane[bit] == 0) acc.sharing_lanes = narrow(acc.sharing_lanes | 1 << bit);
    acc.run = consecutive(acc.col, acc.fragment);
    // A register's row, counted in rows that the lane holds.
    acc.row_slots = 1;
    for (int bit = 0; (1 << bit) < acc.fragment; ++bit) {
        if (acc.row.reg[bit] == 0) continue;
        for (int r = 0; r < acc.fragment; ++r)
            if ((r >> bit & 1) != 0)
                acc.slot_of_register[r] = static_cast<std::int8_t>(acc.slot_of_register[r] + acc.row_slots);
        acc.row_slots = narrow(2 * acc.row_slots);
    }
    return acc;
}

/// Such a tile whose columns are shared out among `waves` waves that have the same rows.
constexpr AccumulatorPlan part_of_columns(AccumulatorPlan acc, int waves) {
    if (waves == 1) return acc;
    acc.column_tiles = narrow(acc.column_tiles / waves);
    acc.registers = narrow(acc.registers / waves);
    acc.column_waves = narrow(waves);
    acc.column_step = narrow(acc.column_tiles * acc.cols);
    return acc;
}

/// One value for every row of such a tile.
constexpr RowPlan row_plan(const AccumulatorPlan& acc) {
    RowPlan rows;
    rows.block_rows = acc.block_rows;
    rows.wave_rows = acc.wave_rows;
    rows.tile_rows = acc.rows;
    rows.slots = 1;
    for (int bit = 0; (1 << bit) < acc.fragment; ++bit) {
        const int down = acc.row.reg[bit];
        if (down == 0) continue;
        for (int slot = 0; slot < rows.slots; ++slot)
            rows.row_of_slot[slot + rows.slots] = static_cast<std::int8_t>(rows.row_of_slot[slot] + down);
        rows.slots = narrow(2 * rows.slots);
    }
    rows.row = acc.row;
    for (std::int8_t& part : rows.row.reg) part = 0;
    rows.sharing_lanes = acc.sharing_lanes;
    rows.registers = narrow(acc.row_tiles * rows.slots);
    return rows;
}

/// A product of fragments that are `k` deep; without a tile yet.
constexpr ProductPlan product_plan(const InstructionInfo& info, int k, bool transposed) {
    ProductPlan p;
    if (info.k == 0 || k % info.k != 0) return p;
    const int parts = k / info.k;
    const int bits = element_bits(info.operand);
    p.instruction = info.instruction;
    p.transposed = transposed;
    p.parts = static_cast<std::int16_t>(parts);
    p.depth = static_cast<std::int16_t>(k);
    p.copies = info.copies;
    const int left = transposed ? info.b_elements : info.a_elements;
    const int right = transposed ? info.a_elements : info.b_elements;
    p.left_elements = static_cast<std::int16_t>(left * parts);
    p.right_elements = static_cast<std::int16_t>(right * parts);
    p.left_words = static_cast<std::int16_t>(p.left_elements * bits / 32);
    p.right_words = static_cast<std::int16_t>(p.right_elements * bits / 32);
    p.left_outer = transposed ? info.b_col : info.a_row;
    p.right_outer = transposed ? info.a_row : info.b_col;
    p.left_k = deepen(transposed ? info.b_k : info.a_k, left, info.k, parts, transposed);
    p.right_k = deepen(transposed ? info.a_k : info.b_k, right, info.k, parts, transposed);
    p.left_run = consecutive(p.left_k, p.left_elements, p.left_outer);
    p.right_run = consecutive(p.right_k, p.right_elements);
    const int scales = info.scale_block != 0 ? 1 : 0;
    p.left_fragment = static_cast<std::int16_t>(p.left_words + scales);
    p.right_fragment = static_cast<std::int16_t>(p.right_words + scales);
    p.scale_block = info.scale_block;
    p.left_scale = transposed ? info.b_scale : info.a_scale;
    p.right_scale = transposed ? info.a_scale : info.b_scale;
    return p;
}

/// Gives a product its tile and the depth of its left operand and of one step through it.
constexpr void give_tile(ProductPlan& p, const AccumulatorPlan& acc, int depth, int step) {
    p.acc = acc;
    p.depth_fragments = static_cast<std::int16_t>(depth / p.depth);
    p.joins_steps = step < p.depth;
    p.step_fragments = static_cast<std::int16_t>(p.joins_steps ? 1 : step / p.depth);
    p.left_registers = static_cast<std::int16_t>(acc.row_tiles * p.left_fragment);
    // ldmatrix delivers four words at a time.
    p.right_registers = p.load_matrix ? std::int16_t{4} : p.right_fragment;
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
/// The accumulators that become a fragment of `count` weights a lane.
constexpr LaneElements accumulators(const AccumulatorPlan& scores, int count) {
    LaneElements out{count, {}, {}};
    for (int x = 0; x < count; ++x) {
        const int tile = x / scores.fragment, r = x % scores.fragment;
        out.row[x] = scores.row_of_register[r];
        out.key[x] = static_cast<std::int16_t>(tile * scores.cols + scores.col_of_register[r]);
    }
    return out;
}

/// Finds the lane bits that number blocks of depth for a scaled instruction, but stand for depths within a block in the
/// accumulators, and the element bits that hold those blocks.
constexpr void plan_weight_swaps(const ProductPlan& product, WeightPlan& weights, DepthOrder& order) {
    for (int bit = 0; bit < 6; ++bit) {
        const std::int8_t block = product.left_k.lane[bit];
        std::int8_t& own = order.lane.lane[bit];
        if (block < product.scale_block || own == block) continue;
        for (int e = 1, element_bit = 0; e < product.right_elements; e *= 2, ++element_bit) {
            if (order.element[e] != block) continue;
            weights.swaps[weights.swap_count++] = {static_cast<std::int8_t>(bit),
                                                   static_cast<std::int8_t>(element_bit)};
            for (int with = 0; with < product.right_elements; ++with)
                if ((with >> element_bit & 1) != 0)
                    order.element[with] = static_cast<std::int16_t>(order.element[with] - block + own);
            own = block;
            break;
        }
    }
}

/// Whether every lane and element of a scaled product lies in the block of depth whose scale the instruction applies to
/// it, where lanes can exchange words; and whether a lane has weights and scales of the same row.
constexpr bool weights_keep_blocks(const AccumulatorPlan& scores, const ProductPlan& product,
                                   const WeightPlan& weights, const DepthOrder& order, int wave_size) {
    const ProductPlan& p = product;
    if (p.scale_block == 0) return true;
    for (int lane = 0; lane < wave_size; ++lane) {
        for (int e = 0; e < p.right_elements; ++e)
            if ((order.element[e] + order.lane.of_lane(lane)) / p.scale_block !=
                p.right_k.at(lane, e) / p.scale_block)
                return false;
        if (p.left_scale.outer.of_lane(lane) != scores.row.of_lane(lane)) return false;
    }
    for (const std::int8_t part : scores.row.reg)
        if (part != 0) return false;
    for (int i = 0; i < weights.swap_count; ++i)
        if (element_bits(weights.type) << weights.swaps[i].element_bit < 32) return false;
    return true;
}

/// Fills in how the left operand of `product` follows from the accumulators `scores`, and the order of depth that its
/// right operand has therefore.
constexpr void plan_weights(const AccumulatorPlan& scores, const ProductPlan& product, WeightPlan& weights,
                            DepthOrder& order) {
    order.natural = false;
    order.depth = product.depth;
    const int own = product.left_elements / product.copies;
    if (product.copies == 1) {
        const LaneElements before = accumulators(scores, own);
        LaneElements operand{own, {}, {}};
        for (int e = 0; e < own; ++e) {
            operand.row[e] = static_cast<std::int16_t>(product.left_outer.of_reg(e));
            operand.key[e] = static_cast<std::int16_t>(product.left_k.of_reg(e));
        }
        for (int x = 0; x < own; ++x) {
            const int smaller = before.rank(x);
            for (int e = 0; e < own; ++e)
                if (operand.row[e] == before.row[x] && operand.rank(e) == smaller)
                    weights.source[e] = static_cast<std::int16_t>(x);
        }
        for (int e = 0; e < product.right_elements; ++e) {
            const int k = product.right_k.of_reg(e);
            for (int left = 0; left < own; ++left)
                if (operand.row[left] == 0 && operand.key[left] == k)
                    order.element[e] = before.key[weights.source[left]];
        }
        order.lane = scores.col;
        for (std::int8_t& part : order.lane.reg) part = 0;
        if (product.scale_block != 0) plan_weight_swaps(product, weights, order);
    } else {
        // Both half-waves hold all of the depth, in its natural order; `narrow` exchanges it.
        for (int e = 0; e < product.left_elements; ++e) {
            weights.source[e] = static_cast<std::int16_t>(e);
            order.element[e] = static_cast<std::int16_t>(e);
        }
    }
    for (int bit = 0; (1 << bit) < product.depth; ++bit) {
        order.place[bit] = static_cast<std::int16_t>(1 << bit);
        if (product.load_matrix) continue;
        for (int e = 1; e < product.right_elements; e *= 2)
            if (order.element[e] == 1 << bit) order.place[bit] = static_cast<std::int16_t>(e);
        int group = product.right_elements;
        for (const std::int8_t part : order.lane.lane) {
            if (part == 1 << bit) order.place[bit] = static_cast<std::int16_t>(group);
            if (part != 0) group *= 2;
        }
    }
}

/// Whether the accumulator registers that become one operand fragment hold exactly the fragment's depth, so that
/// fragments follow one another as steps do.
constexpr bool weights_cover_fragments(const AccumulatorPlan& scores, const ProductPlan& product) {
    const LaneElements weights = accumulators(scores, product.left_elements / product.copies);
    int last = 0;
    for (int x = 0; x < weights.count; ++x) last = weights.key[x] > last ? weights.key[x] : last;
    for (const std::int8_t part : scores.col.lane) last += part;
    return last == product.depth - 1;
}

} // namespace fmha::hip_target::planning
