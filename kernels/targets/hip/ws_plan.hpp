#pragma once

#include "kernels/programs/head_rows.hpp"
#include "kernels/programs/ws_sums.hpp"
#include "kernels/targets/hip/block_plan.hpp"
#include "kernels/targets/hip/descriptor.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Tiles of one operand on their way from memory to products: a ring of stages in LDS, and two barriers a stage, one for
/// "full", one for "empty".
struct StreamPlan {
    ElementType type = ElementType::fp16;
    std::int16_t lines = 0,
                 elements = 0;  ///< of a tile: keys or queries, and channels; by column channels and keys
    bool by_column = false;     ///< a line is a channel with its keys
    bool interleaved = false;   ///< even lines of a tile come first, then odd ones
    bool transposed = false;    ///< waves of the feed fill it, from `WsPlan::arriving`
    std::int16_t box_lines = 0; ///< that one copy brings: all of them, or as many as lie in one page
    std::int16_t stages = 0;
    std::int32_t offset = 0, stage_bytes = 0;
    std::int32_t barriers = 0; ///< where they are: "full" of every stage, then "empty" of every stage
    std::int16_t fillers = 1, takers = 0; ///< arrivals that make a stage full, and empty

    FMHA_DEVICE constexpr int boxes() const { return lines / box_lines; }
    /// Lines of a box that lie together in a stage: even lines of all boxes come first where a tile is interleaved.
    FMHA_DEVICE constexpr int lines_together() const { return interleaved ? box_lines / 2 : box_lines; }
    FMHA_DEVICE constexpr int stage(int number) const { return offset + number * stage_bytes; }
    FMHA_DEVICE constexpr int full(int number) const { return barriers + 8 * number; }
    FMHA_DEVICE constexpr int empty(int number) const { return barriers + 8 * (stages + number); }
};

/// The plan of warp-specialised attention. The tiles of BlockPlan are those of one team: a warp group of four waves, which
/// owns 64 rows. One more warp group is the feed.
struct WsPlan : BlockPlan {
    static constexpr int group_threads = 128, team_rows = 64;

    std::int16_t teams = 0;
    std::int16_t feed_registers = 0, team_registers = 0; ///< a thread, after the split
    std::int16_t feeders = 1;     ///< threads of the feed that start copies, in a warp each
    std::int16_t transposers = 0; ///< waves of the feed that transpose tiles of values
    bool takes_turns = false;     ///< teams start their products one after another
    StreamPlan queries, keys, values;
    StreamPlan arriving; ///< the values as copies bring them, where they are transposed
    /// The target of products of weights and values: a tile like the output where sums over tiles of keys are not the matrix
    /// unit's, else the output's own layout, for nothing.
    AccumulatorPlan addend;

    FMHA_DEVICE constexpr int waves_of_teams() const { return teams * 4; }
    /// What copies of the values fill.
    FMHA_DEVICE constexpr const StreamPlan& copied_values() const {
        return values.transposed ? arriving : values;
    }
};

namespace planning {

/// Lays the scores out for products of 8 bits (interleaved_register), and the weights after them, whose keys are in their natural order then.
constexpr void interleave(WsPlan& plan, const Tile& tile) {
    constexpr int columns = 16;
    InstructionInfo two = instruction_info(plan.first.instruction);
    two.n = columns;
    two.c_elements = 8;
    two.c_row = {{0, 0, 1, 2, 4}, {0, 8, 0}};
    two.c_col = {{4, 8}, {2, 0, 1}};
    AccumulatorPlan scores = accumulator_plan(two, false, WsPlan::group_threads / 32, 1, tile.n0 / columns);
    scores.loaded = plan.first.acc.loaded;
    plan.first.acc = scores;
    plan_weights(scores, plan.second, plan.weights, plan.value.order);
}

} // namespace planning

/// Pages of paged-KV hold whole multiples of so many keys (P-4).
inline constexpr int page_granule = 128;

/// So many keys of a tile of `cfg`, all of them or those of a page, lie one after another, or 0 where tensor copies do not bring them.
constexpr int keys_of_box(const KernelConfig& cfg) {
    const Signature& has = cfg.signature;
    const int keys = cfg.algorithm.tile.n0;
    const ApiTraits& api = api_traits_of(has.family);
    if (!api.always_paged) return keys;
    if (!api.lists_pages) return page_granule % keys == 0 ? keys : 0;
    if (has.page_size % keys == 0) return keys;
    // Keys of 8 bits come in two halves of a box, even lines and odd ones.
    const int granule = SwizzledTile::group_lines * (kernels::adds_tiles_apart(has.data_type) ? 2 : 1);
    return has.page_size % granule == 0 && keys % has.page_size == 0 ? has.page_size : 0;
}

/// The most boxes of a tile: products have at most 256 columns, and a page at least 8 keys.
inline constexpr int most_boxes = 32;

/// The part of a multiprocessor's LDS that a block takes beside its own (CUDA C++ Programming Guide, compute capability 9.0).
inline constexpr int lds_of_system = 1024;

namespace planning {

/// Whether waves of the feed can transpose the values of a tile: in squares, of lines of one block either way.
constexpr bool transposable(const Tile& tile) {
    constexpr int keys = 32, channels = 32; // of a step of both waves, and of a matrix read
    return tile.n0 % keys == 0 && tile.n1 % channels == 0 && tile.n0 <= SwizzledTile::line_bytes &&
           tile.n1 <= SwizzledTile::line_bytes;
}

/// Teams, blocks of a multiprocessor, and the registers of their threads.
constexpr void deal_out_threads(WsPlan& plan, const KernelConfig& cfg) {
    plan.teams = cfg.algorithm.wave.m0;
    plan.threads = static_cast<std::int16_t>((plan.teams + 1) * WsPlan::group_threads);
    plan.blocks = static_cast<std::int16_t>(cfg.algorithm.block_per_cu > 0 ? cfg.algorithm.block_per_cu : 1);
    // Registers are dealt out to threads at entry, in eights; then the feed hands its spare ones to the teams.
    const int at_entry = 65536 / (plan.blocks * plan.threads) / 8 * 8;
    // Of tiles of several pages it has their numbers: 40 registers spill 24 bytes, but beside e4m3's two feeders the teams would spill 20.
    const bool several_pages =
        keys_of_box(cfg) < cfg.algorithm.tile.n0 && !kernels::adds_tiles_apart(cfg.signature.data_type);
    plan.feed_registers = plan.teams * plan.blocks > 2 ? 32 : several_pages ? 56 : 40;
    plan.team_registers =
        static_cast<std::int16_t>((at_entry * (plan.teams + 1) - plan.feed_registers) / plan.teams / 8 * 8);
    // Teams of different blocks meet nowhere, and need no order. Turns gain where products are long beside a softmax. Those of e4m3 are
    // short: with V by column, 128 channels, a team loses more by waiting for its turn. With V by row it does not.
    const bool short_products = kernels::adds_tiles_apart(cfg.signature.data_type) &&
                                cfg.signature.v_layout == VLayout::column && cfg.algorithm.tile.n1 == 128;
    plan.takes_turns = plan.teams > 1 && cfg.algorithm.tile.n1 <= 128 && !short_products;
}

/// Stages of queries, keys and values in LDS, with their barriers behind them. A box has `box_keys` keys. Products of 8 bits take values by
/// column; `transposes`: which come by row.
constexpr void lay_out_streams(WsPlan& plan, const KernelConfig& cfg, bool transposes, int box_keys) {
    const Tile& tile = cfg.algorithm.tile;
    const bool e4m3 = kernels::adds_tiles_apart(cfg.signature.data_type);
    const auto stream = [&](ElementType type, int lines, int elements, int stages) {
        StreamPlan s;
        s.type = type;
        s.lines = s.box_lines = static_cast<std::int16_t>(lines);
        s.elements = static_cast<std::int16_t>(elements);
        s.stages = static_cast<std::int16_t>(stages);
        s.offset = plan.lds_bytes;
        s.stage_bytes = SwizzledTile::bytes(lines, elements, type);
        plan.lds_bytes += stages * s.stage_bytes;
        return s;
    };
    plan.lds_bytes = 0;
    const int lines_of_values = e4m3 ? tile.n1 : tile.n0, line_of_values = e4m3 ? tile.n0 : tile.n1;
    const int of_queries = SwizzledTile::bytes(tile.m0, tile.k0max, plan.query.type);
    const int of_arriving = transposes ? SwizzledTile::bytes(tile.n0, tile.n1, plan.value.type) + 16 : 0;
    const int of_tile = SwizzledTile::bytes(tile.n0, tile.k0max, plan.key.type) +
                        SwizzledTile::bytes(lines_of_values, line_of_values, plan.value.type) + of_arriving;
    const int room = (lds_limit(plan.unit) + lds_of_system) / plan.blocks - lds_of_system;
    const auto fits = [&](int of_q, int of_k) {
        return of_q * (of_queries + 16) + of_k * (of_tile + 2 * 16) <= room;
    };
    // Under a mask three teams are up to a tile of keys apart. Over pages a third stage is untried.
    const bool paged = api_traits_of(cfg.signature.family).always_paged;
    const bool apart = plan.teams == 3 && cfg.signature.mask != MaskClass::none && !paged;
    const int stages = (plan.blocks > 1 || apart) && fits(2, 3) ? 3 : 2;
    // Two tiles of the queries where there is room: those of the next item come while one is computed.
    plan.queries = stream(plan.query.type, tile.m0, tile.k0max, fits(2, stages) ? 2 : 1);
    plan.keys = stream(plan.key.type, tile.n0, tile.k0max, stages);
    plan.values = stream(plan.value.type, lines_of_values, line_of_values, stages);
    if (transposes) plan.arriving = stream(plan.value.type, tile.n0, tile.n1, stages);
    plan.keys.interleaved = plan.values.by_column = e4m3;
    plan.keys.box_lines = static_cast<std::int16_t>(box_keys);
    if (transposes) {
        plan.values.transposed = true;
        plan.transposers = plan.values.fillers = 2;
        plan.arriving.box_lines = plan.keys.box_lines;
    } else if (!e4m3) {
        plan.values.box_lines = plan.keys.box_lines;
    }
    constexpr int warps_of_feed = 4;
    const int boxes = plan.keys.boxes(), most_feeders = warps_of_feed - plan.transposers;
    plan.feeders = static_cast<std::int16_t>(boxes < most_feeders ? boxes : most_feeders);
    for (StreamPlan* s : {&plan.queries, &plan.keys, &plan.values, &plan.arriving}) {
        s->takers = static_cast<std::int16_t>(plan.waves_of_teams());
        s->barriers = plan.lds_bytes;
        plan.lds_bytes += 16 * s->stages;
    }
    if (transposes) plan.arriving.takers = plan.transposers;
    if (plan.lds_bytes > room) plan.problem = PlanProblem::lds;
}

} // namespace planning

/// The plan of a configuration with pipeline `ws`, or the problem with it. Its waves along rows are warp groups.
constexpr WsPlan ws_plan_of(const KernelConfig& cfg) {
    const Tile& tile = cfg.algorithm.tile;
    const Signature& has = cfg.signature;
    WsPlan plan;
    plan.problem = PlanProblem::ws_features;
    const bool halves = has.data_type == DataType::fp16 || has.data_type == DataType::bf16;
    const bool e4m3 = kernels::adds_tiles_apart(has.data_type);
    const ApiTraits& api = api_traits_of(has.family);
    const bool paged = api.always_paged;
    const bool in_vectors = api.lists_pages && has.kv_layout != KvLayout::linear;
    // Products of 8 bits take lines of depth alone: V by row is transposed on its way to them.
    const bool by_row = has.v_layout == VLayout::row, transposes = e4m3 && by_row;
    if (matrix_unit(cfg.arch) != MatrixUnit::nvidia || !api.tensor_maps || in_vectors || (paged && !by_row) ||
        (!halves && !e4m3) || (halves && !by_row) || has.has_dropout ||
        (has.qscale != QScale::no_scale && (!e4m3 || has.qscale != QScale::pertensor)))
        return plan;
    // Rows of several heads: a map that ends with sequences has no dimension for heads, a bias is one head's, and e4m3 has its own maxima.
    const bool packs = kernels::HeadRows::serve(cfg);
    if (packs && (paged || has.mode != Mode::batch || e4m3 || has.bias != BiasType::no_bias)) return plan;
    plan.problem = PlanProblem::ws_tiles;
    const GemmTriples &wave = cfg.algorithm.wave, &warp = cfg.algorithm.warp;
    const int depth = e4m3 ? 32 : 16;
    const auto product = [](int n, int part) { return n >= part && n <= 256 && n % part == 0; };
    constexpr int most_channels_apart = 128; // the output and its addend are half of a team's registers
    if (wave.m0 < 1 || wave.m0 > (packs ? 1 : 3) || wave.n0 != 1 || wave.n1 != 1 ||
        tile.m0 != wave.m0 * WsPlan::team_rows || warp.m0 != WsPlan::team_rows || warp.n0 != tile.n0 ||
        warp.n1 != tile.n1 || warp.k0 != depth || warp.k1 != depth || !product(tile.n0, depth) ||
        !product(tile.n1, 16) || tile.k0max % depth != 0 || tile.n1 < has.hdim_v ||
        (e4m3 && tile.n1 > most_channels_apart) || (transposes && !planning::transposable(tile)) ||
        keys_of_box(cfg) == 0)
        return plan;

    // Warp-group instructions lay out a team's accumulators as four warps with mma.sync do.
    KernelConfig team = cfg;
    team.signature.family = KernelFamily::fwd;
    team.algorithm.pipeline = Pipeline::qr;
    team.algorithm.tile.m0 = WsPlan::team_rows;
    team.algorithm.tile.k0 = team.algorithm.tile.k1 = static_cast<std::int16_t>(depth);
    team.algorithm.wave.m0 = 4;
    team.algorithm.warp = {16, 8, team.algorithm.tile.k0, 16, 8, team.algorithm.tile.k1};
    static_cast<BlockPlan&>(plan) = plan_of(team);
    if (plan.problem != PlanProblem::none) return plan;

    if (e4m3) planning::interleave(plan, tile);
    plan.rows.sums_in_parts = true;
    // The order that the assembler finds by itself changes with code elsewhere. e4m3 has two maxima a row, and a better one.
    plan.rows.second_row_first = !e4m3;
    // Of 16 bits it gains nothing, and beside a generic mask registers are scarce.
    plan.rows.maxima_in_parts = e4m3 && has.mask != MaskClass::generic;
    plan.second.acc.stores_units = tile.n1 % 32 == 0 && element_bits(plan.second.acc.stored) == 16;
    plan.addend = plan.second.acc;

    planning::deal_out_threads(plan, cfg);
    planning::lay_out_streams(plan, cfg, transposes, keys_of_box(cfg));
    // Two warps look pages up beside each other. Three teams gain nothing.
    if (paged && !api.lists_pages && plan.teams < 3) plan.feeders = 2;
    return plan;
}

} // namespace fmha::hip_target
