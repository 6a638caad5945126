#pragma once

#include "dispatcher/types/element.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "kernels/targets/hip/instruction.hpp"

#include <cstdint>

/// Everything that follows from a configuration before a block runs: who holds which element, what lies where
/// in LDS, how many registers a thread needs. A constant on a device, a value on the host.
namespace fmha::hip_target {

/// One matrix product of the program in terms of its tiles: rows are queries, columns keys or channels,
/// whichever operand of the instruction they are. A fragment is what `parts` instructions consume.
struct ProductPlan {
    MatrixInstruction instruction = MatrixInstruction::none;
    std::int16_t parts = 0;
    std::int16_t rows = 0, cols = 0, depth = 0; ///< of one fragment
    std::int16_t copies = 1;                    ///< lanes that hold each operand element
    std::int16_t left_elements = 0, right_elements = 0, acc_registers = 0;
    std::int16_t left_words = 0, right_words = 0;
    Axis left_outer, left_k, right_outer, right_k; ///< row (or column) and depth of an operand's element
    Axis acc_row, acc_col;
    /// Their register parts, looked up because a compiler folds that at once.
    std::int8_t row_of_register[16] = {}, col_of_register[16] = {};

    std::int8_t left_consecutive = 1, right_consecutive = 1, acc_consecutive = 1;

    /// Consecutive elements of an operand, in registers and in depth, from an even start.
    FMHA_DEVICE constexpr int left_run() const { return left_consecutive; }
    FMHA_DEVICE constexpr int right_run() const { return right_consecutive; }
    /// Consecutive accumulator registers that hold consecutive columns.
    FMHA_DEVICE constexpr int acc_run() const { return acc_consecutive; }
};

/// A tile in LDS: lines of consecutive elements. Lines are a multiple of 16 bytes and padded by 16, so that
/// column accesses of 4, 8 and 16 bytes fall on different banks.
struct Image {
    std::int32_t offset = 0, line_bytes = 0, lines = 0;

    FMHA_DEVICE constexpr int bytes() const { return line_bytes * lines; }
    FMHA_DEVICE static constexpr Image of(int lines, int line_elements, ElementType type) {
        const auto bytes = static_cast<std::int32_t>(element_bytes(type, line_elements));
        return {0, (bytes + 15) / 16 * 16 + 16, lines};
    }
};

/// Where the query tile lives while the keys stream past.
enum class QueryPlace : std::uint8_t {
    registers, ///< as operand fragments
    lds,       ///< read again for every product
    memory,    ///< the same, when neither has room
};

/// Why a configuration has no plan; `cannot_execute` says it in words.
enum class PlanProblem : std::uint8_t {
    none,
    unknown_unit,
    no_instruction,
    different_shapes,
    mixed_operands,
    waves_along_keys,
    row_tiles,
    key_tiles,
    first_depth,
    second_depth,
    channel_tiles,
    weight_keys,
    lds,
};

struct BlockPlan {
    PlanProblem problem = PlanProblem::none; ///< anything else: nothing below may be used but lds_bytes
    MatrixUnit unit = MatrixUnit::none;
    std::int16_t wave_size = 0, waves = 0, threads = 0, wave_rows = 0;
    /// S^T = K·Q^T and O^T = V^T·P^T, so that the query is the column of every instruction.
    bool transposed = false;
    /// Whole key and value tiles are copied to LDS asynchronously, two of each; otherwise one step of k0 or k1
    /// at a time.
    bool async = false;
    /// Operands of 16 bits are read with ldmatrix.
    bool load_matrix = false;
    /// V in LDS: a line is a channel with its keys, instead of a key with its channels.
    bool value_by_channel = false;
    QueryPlace query_place = QueryPlace::registers;
    ElementType type_q = ElementType::fp16, type_k = ElementType::fp16, type_v = ElementType::fp16,
                type_p = ElementType::fp16, type_o = ElementType::fp16, type_bias = ElementType::fp16;

    ProductPlan first, second;
    std::int16_t row_tiles = 0, key_tiles = 0, channel_tiles = 0;
    std::int16_t row_slots = 0;            ///< rows of one row tile that a lane holds
    std::int8_t slot_of_register[16] = {}; ///< which of them an accumulator register belongs to
    std::int8_t row_of_slot[4] = {};

    /// Registers a thread.
    std::int16_t score_registers = 0, output_registers = 0, part_registers = 0, row_registers = 0;
    std::int16_t weight_words = 0, query_words = 0, left_words = 0, right_words = 0;

    /// Without `async`: a thread reads the next step of keys or values into registers before the products of the
    /// one that is in LDS.
    bool read_ahead = false;
    std::int16_t ahead_words = 1;

    Image query, key, value, random;
    std::int32_t key_stage = 0, value_stage = 0; ///< bytes from one stage to the next; 0 = one stage
    std::int32_t lds_bytes = 0;

    /// The second product contracts keys in the order of the first product's accumulators. Element e of its
    /// right operand is key value_key[e] + value_key_lane.of_lane(lane) of the fragment …
    std::int16_t value_key[32] = {};
    Axis value_key_lane;
    /// … and element e of its left operand is register weight_source[e] of the fragment's scores.
    std::int16_t weight_source[32] = {};
    /// Where a key of a fragment lies in a line of V by channel: so that a lane's elements are consecutive.
    std::int16_t key_place[8] = {};

    FMHA_DEVICE constexpr int place_of_key(int number) const {
        int place = number / second.depth * second.depth;
        for (int bit = 0; (1 << bit) < second.depth; ++bit) place += (number >> bit & 1) * key_place[bit];
        return place;
    }
    /// How many consecutive keys, from a multiple of that number, lie next to each other.
    FMHA_DEVICE constexpr int place_run() const {
        int run = 1;
        for (int bit = 0; run < second.depth && key_place[bit] == run; ++bit) run *= 2;
        return run;
    }
};

/// LDS that one block may use.
constexpr int lds_limit(MatrixUnit unit) {
    return unit == MatrixUnit::nvidia ? 232448 : unit == MatrixUnit::cdna4 ? 163840 : 65536;
}

namespace planning {

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
    return p;
}

/// Fills in how the second product's operands follow from the first product's accumulators.
constexpr void plan_weights(BlockPlan& plan) {
    const ProductPlan& scores = plan.first;
    const ProductPlan& second = plan.second;
    const auto column = [&](int x) {
        return x / scores.acc_registers * scores.cols + scores.acc_col.of_reg(x % scores.acc_registers);
    };
    const auto row = [&](int x) { return scores.acc_row.of_reg(x % scores.acc_registers); };
    const int own = second.left_elements / second.copies;
    if (second.copies == 1) {
        for (int e = 0; e < own; ++e) {
            int rank = 0;
            for (int other = 0; other < own; ++other)
                rank += second.left_outer.of_reg(other) == second.left_outer.of_reg(e) &&
                        second.left_k.of_reg(other) < second.left_k.of_reg(e);
            for (int x = 0; x < own; ++x) {
                if (row(x) != second.left_outer.of_reg(e)) continue;
                int before = 0;
                for (int other = 0; other < own; ++other)
                    before += row(other) == row(x) && column(other) < column(x);
                if (before == rank) plan.weight_source[e] = static_cast<std::int16_t>(x);
            }
        }
        for (int e = 0; e < second.right_elements; ++e)
            for (int left = 0; left < own; ++left)
                if (second.left_outer.of_reg(left) == 0 &&
                    second.left_k.of_reg(left) == second.right_k.of_reg(e))
                    plan.value_key[e] = static_cast<std::int16_t>(column(plan.weight_source[left]));
        plan.value_key_lane = scores.acc_col;
        for (std::int8_t& weight : plan.value_key_lane.reg) weight = 0;
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
    const ProductPlan& scores = plan.first;
    const int own = plan.second.left_elements / plan.second.copies;
    int last = 0;
    for (int x = 0; x < own; ++x) {
        const int key =
            x / scores.acc_registers * scores.cols + scores.acc_col.of_reg(x % scores.acc_registers);
        last = key > last ? key : last;
    }
    for (const std::int8_t weight : scores.acc_col.lane) last += weight;
    return last == plan.second.depth - 1;
}

/// Lays out LDS. Returns false when it does not fit.
constexpr bool plan_lds(BlockPlan& plan, const KernelConfig& cfg) {
    const int limit = lds_limit(matrix_unit(cfg.arch));
    const Tile& tile = cfg.algorithm.tile;
    const int keys = plan.async ? tile.n0 : tile.k1;
    plan.key = Image::of(tile.n0, plan.async ? tile.k0max : tile.k0, plan.type_k);
    plan.value =
        plan.value_by_channel ? Image::of(tile.n1, keys, plan.type_v) : Image::of(keys, tile.n1, plan.type_v);
    if (plan.query_place == QueryPlace::lds) plan.query = Image::of(tile.m0, tile.k0max, plan.type_q);
    if (cfg.signature.has_dropout) plan.random = Image::of(tile.n0, tile.m0, ElementType::uint8);

    int at = plan.query.bytes();
    plan.random.offset = at;
    at += plan.random.bytes();
    if (plan.async) {
        plan.key_stage = plan.key.bytes();
        plan.value_stage = plan.value.bytes();
        plan.key.offset = at;
        plan.value.offset = at + 2 * plan.key_stage;
        plan.lds_bytes = plan.value.offset + 2 * plan.value_stage;
        return plan.lds_bytes <= limit;
    }
    // Steps of keys and of values take turns in the same two buffers, or in one where two do not fit.
    const int buffer = plan.key.bytes() > plan.value.bytes() ? plan.key.bytes() : plan.value.bytes();
    const int stages = at + 2 * buffer <= limit ? 2 : 1;
    plan.key.offset = plan.value.offset = at;
    plan.key_stage = plan.value_stage = stages == 2 ? buffer : 0;
    plan.lds_bytes = at + stages * buffer;
    return plan.lds_bytes <= limit;
}

/// Registers that a wave may keep the query tile in. Beyond that it is read again for every product.
constexpr int query_register_limit(MatrixUnit unit) {
    return unit == MatrixUnit::rdna3 || unit == MatrixUnit::rdna4 ? 32 : 128;
}

/// Registers that a wave may use for accumulators, query tile and the next step: with more, what else a kernel needs
/// does not fit into those of an RDNA wave, or of two waves on CDNA.
constexpr int read_ahead_limit(MatrixUnit unit) {
    return unit == MatrixUnit::nvidia                               ? 0
           : unit == MatrixUnit::rdna3 || unit == MatrixUnit::rdna4 ? 144
                                                                    : 176;
}

/// Decides whether the next step is read ahead, and how many words of it a thread has.
constexpr void plan_read_ahead(BlockPlan& plan, const KernelConfig& cfg) {
    const Tile& tile = cfg.algorithm.tile;
    const auto rounds = [&](int units) { return (units + plan.threads - 1) / plan.threads; };
    const int size_k = element_bits(plan.type_k) / 8, size_v = element_bits(plan.type_v) / 8;
    const bool transposed = plan.value_by_channel && cfg.signature.v_layout == VLayout::row;
    const int keys = 4 * rounds(tile.n0 * tile.k0 * size_k / 16), units = tile.k1 * tile.n1 * size_v / 16;
    const int values = transposed ? 16 * rounds(units / 4) : 4 * rounds(units);
    const int words = keys > values ? keys : values;
    const int used = plan.score_registers + plan.output_registers + plan.query_words + words;
    plan.read_ahead = !plan.async && used <= read_ahead_limit(plan.unit);
    plan.ahead_words = static_cast<std::int16_t>(plan.read_ahead ? words : 1);
}

} // namespace planning

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
    const InstructionInfo first = instruction_info(instruction_for(unit, types.k, warp.m0, warp.n0, warp.k0));
    const InstructionInfo second =
        instruction_info(instruction_for(unit, types.v, warp.m1, warp.n1, warp.k1));
    if (first.k == 0 || second.k == 0) return refused(PlanProblem::no_instruction);
    if (first.m != second.m || first.n != second.n) return refused(PlanProblem::different_shapes);
    if (types.q != types.k || types.p != types.v) return refused(PlanProblem::mixed_operands);
    plan.first = planning::product_plan(first, warp.k0, plan.transposed);
    plan.second = planning::product_plan(second, warp.k1, plan.transposed);
    if (plan.first.left_elements > 32 || plan.second.left_elements > 32)
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

    const bool wide = element_bits(types.v) == 32;
    plan.load_matrix = unit == MatrixUnit::nvidia && element_bits(types.v) == 16;
    plan.async = unit == MatrixUnit::nvidia && cfg.algorithm.pipeline == Pipeline::qr_async;
    plan.value_by_channel = cfg.signature.v_layout == VLayout::column || !(wide || plan.load_matrix);
    if (!planning::weights_cover_fragments(plan)) return refused(PlanProblem::weight_keys);
    planning::plan_weights(plan);

    plan.score_registers = narrow(plan.row_tiles * plan.key_tiles * plan.first.acc_registers);
    plan.output_registers = narrow(plan.row_tiles * plan.channel_tiles * plan.second.acc_registers);
    plan.part_registers = plan.second.acc_registers;
    plan.row_registers = narrow(plan.row_tiles * plan.row_slots);
    plan.weight_words = narrow(plan.row_tiles * (tile.n0 / plan.second.depth) * plan.second.left_words);
    plan.left_words = narrow(plan.row_tiles * plan.first.left_words);
    const int words_first = plan.first.right_words, words_second = plan.second.right_words;
    // ldmatrix delivers four words at a time.
    plan.right_words = narrow(plan.load_matrix ? 4 : words_first > words_second ? words_first : words_second);
    const int query_words = plan.row_tiles * (tile.k0max / plan.first.depth) * plan.first.left_words;
    // Block scales add a part of the product and much scalar state to a full file.
    const bool crowded = cfg.signature.qscale == QScale::blockscale && plan.output_registers >= 128;
    const bool in_registers =
        unit != MatrixUnit::nvidia && !crowded && query_words <= planning::query_register_limit(unit);
    plan.query_place = in_registers ? QueryPlace::registers : QueryPlace::lds;
    plan.query_words = narrow(in_registers ? query_words : 1);
    bool fits = planning::plan_lds(plan, cfg);
    if (!fits && !in_registers && unit != MatrixUnit::nvidia) {
        plan.query_place = QueryPlace::memory;
        plan.query = {};
        fits = planning::plan_lds(plan, cfg);
    }
    if (!fits) plan.problem = PlanProblem::lds;
    planning::plan_read_ahead(plan, cfg);
    return plan;
}

} // namespace fmha::hip_target
