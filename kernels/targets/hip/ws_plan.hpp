#pragma once

#include "kernels/targets/hip/block_plan.hpp"
#include "kernels/targets/hip/descriptor.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Tiles of one operand on their way from memory to products: a ring of stages in LDS, and two barriers a stage, one for
/// "full", one for "empty".
struct StreamPlan {
    ElementType type = ElementType::fp16;
    std::int16_t lines = 0, elements = 0; ///< of a tile: keys or queries, and channels
    std::int16_t stages = 0;
    std::int32_t offset = 0, stage_bytes = 0;
    std::int32_t barriers = 0; ///< where they are: "full" of every stage, then "empty" of every stage

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
    bool takes_turns = false;                            ///< teams start their products one after another
    StreamPlan queries, keys, values;

    FMHA_DEVICE constexpr int waves_of_teams() const { return teams * 4; }
};

/// Pages of paged-KV hold whole multiples of so many keys (P-4).
inline constexpr int page_granule = 128;

/// What a block takes of a multiprocessor's LDS beside its own (CUDA C++ Programming Guide, compute capability 9.0).
inline constexpr int lds_of_system = 1024;

/// The plan of a configuration with pipeline `ws`, or the problem with it. Its waves along rows are warp groups.
constexpr WsPlan ws_plan_of(const KernelConfig& cfg) {
    const Tile& tile = cfg.algorithm.tile;
    const Signature& has = cfg.signature;
    WsPlan plan;
    plan.problem = PlanProblem::ws_features;
    const bool halves = has.data_type == DataType::fp16 || has.data_type == DataType::bf16;
    const bool paged = has.family == KernelFamily::fwd_pagedkv;
    if (matrix_unit(cfg.arch) != MatrixUnit::nvidia || (has.family != KernelFamily::fwd && !paged) ||
        !halves || has.v_layout != VLayout::row || has.has_dropout || has.qscale != QScale::no_scale)
        return plan;
    plan.problem = PlanProblem::ws_tiles;
    const GemmTriples &wave = cfg.algorithm.wave, &warp = cfg.algorithm.warp;
    const auto product = [](int n) { return n >= 16 && n <= 256 && n % 16 == 0; };
    if (wave.m0 < 1 || wave.m0 > 3 || wave.n0 != 1 || wave.n1 != 1 ||
        tile.m0 != wave.m0 * WsPlan::team_rows || warp.m0 != WsPlan::team_rows || warp.n0 != tile.n0 ||
        warp.n1 != tile.n1 || warp.k0 != 16 || warp.k1 != 16 || !product(tile.n0) || !product(tile.n1) ||
        tile.k0max % 16 != 0 || tile.n1 < has.hdim_v || (paged && page_granule % tile.n0 != 0))
        return plan;

    // Warp-group instructions lay out a team's accumulators as four warps with mma.sync do.
    KernelConfig team = cfg;
    team.signature.family = KernelFamily::fwd;
    team.algorithm.pipeline = Pipeline::qr;
    team.algorithm.tile.m0 = WsPlan::team_rows;
    team.algorithm.tile.k0 = team.algorithm.tile.k1 = 16;
    team.algorithm.wave.m0 = 4;
    team.algorithm.warp = {16, 8, 16, 16, 8, 16};
    static_cast<BlockPlan&>(plan) = plan_of(team);
    if (plan.problem != PlanProblem::none) return plan;

    plan.second.acc.stores_units = tile.n1 % 32 == 0;

    plan.teams = wave.m0;
    plan.threads = static_cast<std::int16_t>((plan.teams + 1) * WsPlan::group_threads);
    plan.blocks = static_cast<std::int16_t>(cfg.algorithm.block_per_cu > 0 ? cfg.algorithm.block_per_cu : 1);
    // Registers are dealt out to threads at entry, in eights; then the feed gives teams what it does not need.
    const int at_entry = 65536 / (plan.blocks * plan.threads) / 8 * 8;
    plan.feed_registers = plan.teams * plan.blocks > 2 ? 32 : 40;
    plan.team_registers =
        static_cast<std::int16_t>((at_entry * (plan.teams + 1) - plan.feed_registers) / plan.teams / 8 * 8);
    // Teams of different blocks meet nowhere, and need no order.
    plan.takes_turns = plan.teams > 1 && tile.n1 <= 128;
    const auto stream = [&](ElementType type, int lines, int elements, int stages) {
        StreamPlan s;
        s.type = type;
        s.lines = static_cast<std::int16_t>(lines);
        s.elements = static_cast<std::int16_t>(elements);
        s.stages = static_cast<std::int16_t>(stages);
        s.offset = plan.lds_bytes;
        s.stage_bytes = SwizzledTile::bytes(lines, elements);
        plan.lds_bytes += stages * s.stage_bytes;
        return s;
    };
    plan.lds_bytes = 0;
    const int of_queries = SwizzledTile::bytes(tile.m0, tile.k0max);
    const int of_tile = SwizzledTile::bytes(tile.n0, tile.k0max) + SwizzledTile::bytes(tile.n0, tile.n1);
    const int room = (lds_limit(plan.unit) + lds_of_system) / plan.blocks - lds_of_system;
    const auto fits = [&](int of_q, int of_k) {
        return of_q * (of_queries + 16) + of_k * (of_tile + 2 * 16) <= room;
    };
    // Two tiles of the queries where there is room: those of the next item come while one is computed.
    const int stages = plan.blocks > 1 && fits(2, 3) ? 3 : 2;
    plan.queries = stream(plan.query.type, tile.m0, tile.k0max, fits(2, stages) ? 2 : 1);
    plan.keys = stream(plan.key.type, tile.n0, tile.k0max, stages);
    plan.values = stream(plan.value.type, tile.n0, tile.n1, stages);
    for (StreamPlan* s : {&plan.queries, &plan.keys, &plan.values}) {
        s->barriers = plan.lds_bytes;
        plan.lds_bytes += 16 * s->stages;
    }
    if (plan.lds_bytes > room) plan.problem = PlanProblem::lds;
    return plan;
}

} // namespace fmha::hip_target
