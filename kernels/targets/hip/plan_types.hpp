#pragma once

#include "dispatcher/types/element_type.hpp"
#include "kernels/targets/hip/image.hpp"
#include "kernels/targets/hip/instruction.hpp"

#include <cstdint>

/// The pieces that block plans are made of, one for each part of a block context: the holders of elements, the places
/// in LDS, how many registers a thread needs.
namespace fmha::hip_target {

/// Why a configuration has no plan; `cannot_execute` says it in words.
enum class PlanProblem : std::uint8_t {
    none,
    no_plan,
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
    combine_channels,
    append_rows,
    gradient_rows,
    backward_waves,
    ws_features,
    ws_tiles,
    rows_of_heads,
};

/// The threads of a block and its demands on a machine: the part that the plans of all families have.
struct BlockShape {
    PlanProblem problem = PlanProblem::none; ///< anything else: nothing of the plan may be used but lds_bytes
    MatrixUnit unit = MatrixUnit::none;
    std::int16_t wave_size = 0, waves = 0, threads = 0;
    std::int32_t lds_bytes = 0;
    std::int16_t blocks = 1; ///< that a multiprocessor computes at once, where a launch has to know it
};

namespace planning {

/// Counts of a plan are small; 16 bits each keep the compiler's work small as well.
constexpr std::int16_t narrow(int number) {
    return static_cast<std::int16_t>(number);
}

/// A plan that holds nothing but the reason why there is none.
template <class Plan>
constexpr Plan refused(PlanProblem problem) {
    Plan none;
    none.problem = problem;
    return none;
}

} // namespace planning

/// How the rows of a block lie in its threads. A wave owns whole rows, in tiles of `tile_rows`; lanes whose numbers differ
/// in bits of `sharing_lanes` alone hold values of the same rows. With 0 rows a wave, all waves have the same ones.
struct RowPlan {
    std::int16_t block_rows = 0, wave_rows = 0, tile_rows = 0;
    std::int16_t slots = 0; ///< rows of one row tile that a lane holds
    std::int8_t row_of_slot[16] = {};
    Axis row; ///< of a lane
    std::int16_t sharing_lanes = 0;
    std::int16_t registers = 0; ///< a thread: one value for every row that it holds
    /// From `split_rows` to `join_rows` lanes that share a row keep a part of its sum each; else they exchange their addends.
    bool sums_in_parts = false;
    /// A lane finds two maxima of a row, of every second element each, so that an element need not wait for the one before it.
    bool maxima_in_parts = false;
    /// Weights of a lane's first row come behind the maximum of its second, whose weights so come first (`behind` of the machine).
    bool second_row_first = false;
    /// No register is left to keep a number over the loop over keys that can be computed again.
    bool computes_again = false;
    bool biases_ahead = false; ///< biases of a tile are asked for a group before they are added
    /// Threads that store find their places there: compilers would keep what follows from a thread's number through the loop over keys.
    bool stores_anew = false;
    bool several_heads = false; ///< rows of a lane may be of several heads (kernels::HeadRows)
};

/// A tile of fp32 in registers: fragments of rows × cols, row tile by row tile. Register r of lane l is element
/// (row.at(l, r), col.at(l, r)) of a fragment.
struct AccumulatorPlan {
    std::int16_t rows = 0, cols = 0;
    std::int16_t fragment = 0; ///< registers of one
    std::int16_t row_tiles = 0, column_tiles = 0;
    std::int16_t registers = 0; ///< of all
    std::int16_t block_rows = 0, wave_rows = 0;
    std::int16_t column_waves = 1;  ///< waves that share rows
    std::int16_t column_step = 0;   ///< columns from one of them to the next; 0: all have the same ones
    std::int16_t sharing_lanes = 0; ///< lane bits that make no difference to the row
    Axis row, col;
    /// Their register parts, looked up because a compiler folds that at once.
    std::int8_t row_of_register[16] = {}, col_of_register[16] = {};
    std::int8_t slot_of_register[16] = {}; ///< which of the lane's rows of a row tile it belongs to
    std::int16_t row_slots = 0;            ///< RowPlan::slots
    std::int8_t run = 1;                   ///< consecutive registers that hold consecutive columns
    /// Before its rows are scaled, a wave looks whether all its factors are 1. That pays where a tile is large.
    bool skips_ones = false;
    /// Four lanes that share a row trade words before they store it, so that each has 16 bytes. Lane bits 0 and 1 are columns 2 and 4 of 8.
    bool stores_units = false;
    /// Types in memory of the matrix that is loaded into, or added to, such a tile and of the stored one.
    ElementType loaded = ElementType::fp32, stored = ElementType::fp32;

    /// Where the rows, and the columns, of a wave begin.
    FMHA_DEVICE constexpr int row_of_wave(int wave) const {
        return (column_waves == 1 ? wave : wave / column_waves) * wave_rows;
    }
    FMHA_DEVICE constexpr int col_of_wave(int wave) const {
        return column_waves == 1 ? 0 : wave % column_waves * column_step;
    }
    /// Which of the waves that have the same elements it is.
    FMHA_DEVICE constexpr int copy_of_wave(int wave) const {
        return column_waves == 1 || column_step != 0 ? 0 : wave % column_waves;
    }
};

/// One matrix product in terms of its tiles: acc[rows × cols] += left[rows × depth] · right[depth × cols]. Left may be
/// either operand of the instruction. `parts` instructions consume a fragment.
struct ProductPlan {
    MatrixInstruction instruction = MatrixInstruction::none;
    /// The instruction computes accᵀ = rightᵀ · leftᵀ, so that a row is the column of every instruction.
    bool transposed = false;
    std::int16_t parts = 0;
    std::int16_t depth = 0;                               ///< of one fragment
    std::int16_t depth_fragments = 0, step_fragments = 0; ///< of the left operand, and of one step through it
    std::int16_t copies = 1;                              ///< lanes that hold each operand element
    std::int16_t left_elements = 0, right_elements = 0;   ///< of one fragment, a lane
    std::int16_t left_words = 0, right_words = 0;
    /// Registers from one fragment to the next: its words, and with a scaled instruction the scale behind them.
    std::int16_t left_fragment = 0, right_fragment = 0;
    Axis left_outer, left_k, right_outer, right_k; ///< row (or column) and depth of an operand's element
    /// Depth of the right operand from one wave to the next, where each multiplies a depth of its own.
    std::int16_t depth_step = 0;
    /// Consecutive elements of an operand, in registers and in depth, from an even start.
    std::int8_t left_run = 1, right_run = 1;
    bool joins_steps = false; ///< a fragment has several of the program's steps, and the first multiplies it
    bool from_zero = false;   ///< the program fills the accumulators with 0 before depth 0
    bool load_matrix = false; ///< operands of 16 bits are read with ldmatrix
    bool own_factor = false;  ///< every product has a factor of its own
    std::int16_t scale_block = 0; ///< 0: the instruction takes no scales
    ScaleMap left_scale, right_scale;
    /// Registers of one read: left fragments of all row tiles, of all of a step where they come from memory, and the result of one read of
    /// the right operand.
    std::int16_t left_registers = 0, right_registers = 0;
    /// Right fragments that are read, in registers of their own, before the one that is multiplied.
    std::int16_t reads_ahead = 0;
    AccumulatorPlan acc;

    /// Left fragments in LDS are read with ldmatrix too.
    FMHA_DEVICE constexpr bool left_matrices() const { return load_matrix && depth == 16; }
    FMHA_DEVICE constexpr bool is_read_ahead() const { return reads_ahead > 0; }
    /// Instructions of CDNA 4 whose operands have eight words take twice as long as others of their shape.
    constexpr bool is_long() const { return right_words == 8 * parts; }
};

/// Where a left operand lives while the right one streams past.
enum class OperandPlace : std::uint8_t {
    registers, ///< as operand fragments
    lds,       ///< read again for every product
    memory,    ///< the same, when neither has room
};

/// A left operand that is loaded as a whole.
struct LeftOperandPlan {
    ElementType type = ElementType::fp16;
    OperandPlace place = OperandPlace::registers;
    std::int16_t words = 1;   ///< registers a thread
    bool parked = false;      ///< they are in the half of a large file that ordinary arithmetic does not use
    bool whole_lines = false; ///< OperandPlan::whole_lines
    Image image;              ///< OperandPlace::lds

    FMHA_DEVICE constexpr bool streams() const { return place != OperandPlace::registers; }
};

/// The order in which the depth of a fragment lies in a right operand: that of the matrix, or another one, because a
/// contraction does not care as long as both sides have the same.
struct DepthOrder {
    bool natural = true;    ///< then the members below mean nothing
    std::int16_t depth = 0; ///< of a fragment
    /// Element e of a lane is depth element[e] + lane.of_lane(number) of the fragment.
    std::int16_t element[32] = {};
    Axis lane;
    /// Where a depth of a fragment lies in a line of LDS: so that a lane's elements are consecutive.
    std::int16_t place[8] = {};

    FMHA_DEVICE constexpr int place_of(int number) const {
        int sum = number / depth * depth;
        for (int bit = 0; (1 << bit) < depth; ++bit) sum += (number >> bit & 1) * place[bit];
        return sum;
    }
    /// The other way round.
    FMHA_DEVICE constexpr int at_place(int where) const {
        int number = where / depth * depth;
        for (int bit = 0; (1 << bit) < depth; ++bit)
            if ((where & place[bit]) != 0) number += 1 << bit;
        return number;
    }
    /// How many consecutive depths, from a multiple of that number, lie next to each other.
    FMHA_DEVICE constexpr int run() const {
        int count = 1;
        for (int bit = 0; count < depth && place[bit] == count; ++bit) count *= 2;
        return count;
    }
};

/// A right operand that streams through LDS, in steps or as whole tiles. A tile is depth × columns.
struct OperandPlan {
    ElementType type = ElementType::fp16;
    std::int16_t columns = 0, depth = 0, step = 0; ///< of a tile, and the depth of one step
    bool transposed = false;       ///< rows of the matrix that it is loaded from are its columns
    bool stored_by_column = false; ///< consecutive in memory are depths, not columns
    bool by_column = false;        ///< a line in LDS is a column with its depths
    /// Loads may take all channels of a tile for granted, so that nobody looks where a line of them ends.
    bool whole_lines = false;
    /// Lines of depths are read by `transposing_read`: element 0 of a lane's read is at depth read_depth and column
    /// read_column of the lane.
    bool reads_transposed = false;
    Axis read_depth, read_column;
    /// Words that a thread copies asynchronously at a time; 0: it goes through registers.
    std::int8_t copy_words = 0;
    /// Words of a line in a patch of four lines that a thread transposes in registers.
    std::int8_t patch_line = 4;
    DepthOrder order;
    Image image;
    std::int32_t stage = 0;        ///< bytes from one stage to the next; 0 = one stage
    std::int16_t scale_blocks = 0; ///< scales of one line of a step, of at most four blocks
    bool joins_steps = false;      ///< a step has several of the program's, which takes them in their order

    FMHA_DEVICE constexpr bool has_scales() const { return scale_blocks != 0; }
    FMHA_DEVICE constexpr int steps() const { return depth / step; }
    /// Copies that every wave of `threads` threads starts for a step that is copied straight to LDS; some start one more.
    FMHA_DEVICE constexpr int copies(int threads) const { return image.bytes() / (threads * 4 * copy_words); }
    /// Consecutive depths in memory have places of their own in a line of LDS, less than 16 bytes of them together.
    FMHA_DEVICE constexpr bool scatters() const {
        return stored_by_column && !order.natural && order.run() * element_bits(type) < 128;
    }
};

/// The tiles that are copied asynchronously.
enum class AsyncCopies : std::uint8_t {
    none,
    tiles, ///< whole tiles of either operand, two of each
    steps, ///< steps, which take turns in two buffers or more: the next ones are on their way during a product
};

/// How operands that take turns come to LDS.
struct StagingPlan {
    AsyncCopies async = AsyncCopies::none;
    bool tiles_ahead =
        false; ///< whole tiles of all operands are asked for while the tiles before them are worked on
    /// Numbers of tiles have 32 bits (kernels::TileVisits), and what the copies of a tile share is found once for all of its steps.
    bool counts_tiles = false;
    bool gathers =
        false; ///< rows of the operands may lie in pages that are smaller than a tile, or in vectors
    /// … and units of a step that exists as a whole are read at once, others one by one in a loop.
    bool gathers_steps = false;
    /// Pages of the rows of a tile come to LDS while the tile before is worked on: where, and room for how many, twice.
    bool pages_ahead = false;
    std::int16_t page_slots = 0;
    std::int32_t pages_at = 0;
    /// The same of descales of a tile's keys, behind the pages: how many; 0 where they are read as the scores need them.
    std::int16_t descale_slots = 0;
    static constexpr int descale_run = 4; ///< keys that a lane has one after another
    bool takes_heads = false;             ///< rows of several heads may share a tile (kernels::HeadRows)
    /// A thread keeps its place over the loop: in copies through registers, and in those straight to LDS of the first operand too,
    /// not of the second alone.
    bool keeps_places = false;
    /// A thread reads the next step of operands that go through registers before the products of the step in LDS.
    bool read_ahead = false;
    bool keys_alone = false; ///< … of the first operand: registers have no room for a step of the others
    bool reads_first =
        false; ///< … and asks for all of it before the first product, at any price in registers
    bool lanes_find_lines = false; ///< lanes compute where the lines of their patches are, not scalars
    /// Waves that copy the lines of a tile which they alone read, so that they need not wait for one another; 1: all threads copy all
    /// lines.
    std::int16_t line_waves = 1;
    /// How many steps LDS has room for, where those of all operands are copied straight to it, so that copies of all but the present
    /// one may be under way. More than two divide the steps of a tile, so that each step has its place.
    std::int16_t buffers = 2;
    /// Registers a thread for the step that is read ahead, and its scales. At least one, because devices know no arrays of none.
    std::int16_t ahead_words = 1, ahead_scales = 1;

    /// Of what comes ahead about the keys of one tile.
    FMHA_DEVICE constexpr int ahead_bytes() const { return 4 * (page_slots + descale_slots); }
    /// Where descales of the keys of a tile are, those of one and of the next in turn.
    FMHA_DEVICE constexpr int descales_at(int stage) const {
        return pages_at + stage * ahead_bytes() + 4 * page_slots;
    }
    FMHA_DEVICE constexpr bool copies_through_registers() const { return async != AsyncCopies::tiles; }
};

/// Two bits that trade places: the depth that a lane bit stands for goes to an element bit of the weights, and back.
struct LaneSwap {
    std::int8_t lane_bit = 0, element_bit = 0;
};

/// How the accumulators of one product become the left operand of another.
struct WeightPlan {
    ElementType type = ElementType::fp16;
    std::int16_t words = 0; ///< registers a thread
    /// How far the maxima of rows may lag behind, in base-2 units: weights may reach exp2 of it.
    float slack = 0.0F;
    /// Element e of a fragment is register source[e] of the accumulators that become it.
    std::int16_t source[32] = {};
    /// Where lanes of both half-waves hold all of the depth, the halves share their weights in LDS, `shared_bytes` a thread from
    /// here on; −1: lanes exchange them.
    static constexpr int shared_bytes = 16;
    std::int32_t shared_at = -1;
    /// Scaled instructions want blocks of depth in lanes of their own: the exchange of lanes before the product.
    LaneSwap swaps[2] = {};
    std::int8_t swap_count = 0;
    std::int16_t block_maxima = 1; ///< registers a thread: the largest weights of blocks of depth

    /// Blocks of depth have scales of their own, which follow from the weights.
    FMHA_DEVICE constexpr bool has_own_scales() const { return type == ElementType::fp4; }
};

/// The plan of forward attention: scores = query · keyᵀ, output += weights · value.
struct BlockPlan : BlockShape {
    RowPlan rows;
    ProductPlan first, second;
    LeftOperandPlan query;
    OperandPlan key, value;
    WeightPlan weights;
    StagingPlan staging;
    /// Waves that have the same rows and keys of their own, and the output once the rows are one's again: a part of its columns each.
    std::int16_t key_waves = 1;
    AccumulatorPlan joined;
    Image random; ///< the random bytes of a score tile: a line is a key with its rows
};

} // namespace fmha::hip_target
