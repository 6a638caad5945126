#pragma once

#include "dispatcher/types/element.hpp"
#include "kernels/targets/hip/image.hpp"
#include "kernels/targets/hip/instruction.hpp"

#include <cstdint>

/// What a block plan consists of: who holds which element, what lies where in LDS, how many registers a thread needs.
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
    /// Registers from one fragment to the next: its words, and with a scaled instruction the scale behind them.
    std::int16_t left_fragment = 0, right_fragment = 0;
    Axis left_outer, left_k, right_outer, right_k; ///< row (or column) and depth of an operand's element
    Axis acc_row, acc_col;
    /// Their register parts, looked up because a compiler folds that at once.
    std::int8_t row_of_register[16] = {}, col_of_register[16] = {};

    std::int8_t left_consecutive = 1, right_consecutive = 1, acc_consecutive = 1;
    std::int16_t scale_block = 0; ///< 0: the instruction takes no scales
    ScaleMap left_scale, right_scale;

    /// Consecutive elements of an operand, in registers and in depth, from an even start.
    FMHA_DEVICE constexpr int left_run() const { return left_consecutive; }
    FMHA_DEVICE constexpr int right_run() const { return right_consecutive; }
    /// Consecutive accumulator registers that hold consecutive columns.
    FMHA_DEVICE constexpr int acc_run() const { return acc_consecutive; }
};

/// What is copied asynchronously.
enum class AsyncCopies : std::uint8_t {
    none,
    tiles, ///< whole key and value tiles, two of each
    steps, ///< steps of k0 or k1, which take turns in two buffers: the next one is on its way during a product
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
    weight_blocks,
    lds,
};

/// Two bits that trade places: the keys that a lane bit stands for go to an element bit of the weights, and back.
struct LaneSwap {
    std::int8_t lane_bit = 0, element_bit = 0;
};

struct BlockPlan {
    PlanProblem problem = PlanProblem::none; ///< anything else: nothing below may be used but lds_bytes
    MatrixUnit unit = MatrixUnit::none;
    std::int16_t wave_size = 0, waves = 0, threads = 0, wave_rows = 0;
    /// S^T = K·Q^T and O^T = V^T·P^T, so that the query is the column of every instruction.
    bool transposed = false;
    AsyncCopies async = AsyncCopies::none;
    /// Words that a thread copies asynchronously at a time; 0: steps go through registers.
    std::int8_t key_words = 0, value_words = 0;
    /// Operands of 16 bits are read with ldmatrix.
    bool load_matrix = false;
    /// V in LDS: a line is a channel with its keys, instead of a key with its channels.
    bool value_by_channel = false;
    /// V by key is read by `transposing_read`: element 0 of a lane's column is at key read_key and channel read_channel
    /// of its lane.
    bool reads_transposed = false;
    Axis read_key, read_channel;
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

    /// A thread reads the next step of what goes through registers before the products of the one that is in LDS.
    bool read_ahead = false;
    std::int16_t ahead_words = 1;

    Image query, key, value, random;
    std::int32_t key_stage = 0, value_stage = 0; ///< bytes from one stage to the next; 0 = one stage
    std::int32_t lds_bytes = 0;

    /// Scales of one line of a step, of at most four blocks.
    std::int16_t key_blocks = 0, value_blocks = 0;
    /// Registers a thread: the scales of the next step and the largest weights of blocks of keys. At least one each,
    /// because devices know no arrays of none.
    std::int16_t ahead_scales = 1, block_maxima = 1;

    /// The second product contracts keys in the order of the first product's accumulators. Element e of its
    /// right operand is key value_key[e] + value_key_lane.of_lane(lane) of the fragment …
    std::int16_t value_key[32] = {};
    Axis value_key_lane;
    /// … and element e of its left operand is register weight_source[e] of the fragment's scores.
    std::int16_t weight_source[32] = {};
    /// Scaled instructions want blocks of keys in lanes of their own: what lanes exchange before the product.
    LaneSwap weight_swaps[2] = {};
    std::int8_t weight_swap_count = 0;
    /// Where a key of a fragment lies in a line of V by channel: so that a lane's elements are consecutive.
    std::int16_t key_place[8] = {};

    FMHA_DEVICE constexpr int place_of_key(int number) const {
        int place = number / second.depth * second.depth;
        for (int bit = 0; (1 << bit) < second.depth; ++bit) place += (number >> bit & 1) * key_place[bit];
        return place;
    }
    /// The other way round.
    FMHA_DEVICE constexpr int key_at_place(int place) const {
        int number = place / second.depth * second.depth;
        for (int bit = 0; (1 << bit) < second.depth; ++bit)
            if ((place & key_place[bit]) != 0) number += 1 << bit;
        return number;
    }
    /// How many consecutive keys, from a multiple of that number, lie next to each other.
    FMHA_DEVICE constexpr int place_run() const {
        int run = 1;
        for (int bit = 0; run < second.depth && key_place[bit] == run; ++bit) run *= 2;
        return run;
    }
};

} // namespace fmha::hip_target
