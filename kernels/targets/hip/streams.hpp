#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/targets/hip/transposition.hpp"
#include "kernels/targets/hip/ws_launch.hpp"
#include "kernels/targets/hip/ws_plan.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// A stream of the plan; `Piece` is its StreamPlan.
template <auto Piece>
struct OperandStream {
    static constexpr auto piece = Piece;
};

/// The meeting places of the feed and the teams of a block: streams, turns, roles of threads. `Streams` of the plan are all of its StreamPlans.
template <class Block, auto... Streams>
class TeamWork {
    static constexpr std::size_t count = sizeof...(Streams);
    static constexpr StreamPlan WsPlan::*all[count] = {Streams...};
    template <auto Piece>
    FMHA_DEVICE static constexpr std::size_t index_of() {
        std::size_t at = 0;
        while (all[at] != Piece) ++at;
        return at;
    }

  public:
    FMHA_DEVICE explicit TeamWork(const Block& block) : block_(block) {}

    FMHA_DEVICE OperandStream<&WsPlan::queries> query_stream() const { return {}; }
    FMHA_DEVICE OperandStream<&WsPlan::keys> key_stream() const { return {}; }
    FMHA_DEVICE OperandStream<&WsPlan::values> value_stream() const { return {}; }

    /// The first row of the team among those of the block.
    FMHA_DEVICE std::int64_t team_row() const {
        return std::int64_t{block_.machine.group() - 1} * WsPlan::team_rows;
    }
    FMHA_DEVICE static constexpr int team_rows() { return WsPlan::team_rows; }
    FMHA_DEVICE void visit(const kernels::FwdItem&, std::int64_t) const {}

    /// Warp group 0 is the feed: one of its threads, or one of each of several warps, runs `fills` for the steps of every item, and other warps
    /// `transposes` for those with values. The other groups are teams.
    template <class Items, class WorkOf, class Fills, class Transposes, class Team>
    FMHA_DEVICE void run(const Items& items, WorkOf work_of, Fills fills, Transposes transposes, Team team) {
        (init_barriers(block_.template piece<Streams>()), ...);
        if (block_.plan().transposers > 0) init_barriers(block_.plan().arriving);
        block_.machine.barriers_ready();
        if (block_.machine.group() == 0) {
            block_.machine.release_registers();
            if constexpr (Block::template may<&WsPlan::values>(&StreamPlan::transposed)) {
                if (block_.machine.transposes(block_.plan().feeders, block_.plan().transposers)) {
                    FMHA_NO_UNROLL
                    for (std::uint32_t n = 0; items.exists(n); ++n) {
                        const auto work = work_of(items[n]);
                        FMHA_NO_UNROLL
                        for (int step = 0; step < work.steps(); ++step) transposes(work, step);
                    }
                    return;
                }
            }
            if (!block_.machine.leads(block_.plan().feeders)) return;
            FMHA_NO_UNROLL
            for (std::uint32_t n = 0; items.exists(n); ++n) {
                const auto work = work_of(items[n]);
                // The queries come in the first step: a feed of 32 registers forgets where they are before it fetches tile after tile.
                if (work.steps() > 0) fills(work, 0);
                FMHA_NO_UNROLL
                for (int step = 1; step < work.steps(); ++step) fills(work, step);
            }
        } else {
            block_.machine.claim_registers();
            // The last team gives the first one its first turn.
            if (block_.plan().takes_turns && block_.machine.group() == block_.plan().teams)
                block_.machine.pass(1);
            FMHA_NO_UNROLL
            for (std::uint32_t n = 0; items.exists(n); ++n) {
                const auto work = work_of(items[n]);
                if (work.exists()) team(work);
            }
        }
    }

    FMHA_DEVICE void turn() const {
        if (block_.plan().takes_turns) block_.machine.turn(block_.machine.group());
    }
    FMHA_DEVICE void pass() const {
        const int group = block_.machine.group();
        if (block_.plan().takes_turns) block_.machine.pass(group == block_.plan().teams ? 1 : group + 1);
    }

    /// The feed waits for the next stage of a stream to be empty, and starts to fill it with the tile from row `row0`, channel `col0` of
    /// `matrix`, which lies at `place` of its tensor. Elements that do not exist are 0. Feeders share a tile of several pages, and each of them
    /// looks its pages up before it waits; copies of a feeder may end before the first one says how many bytes are expected.
    template <auto Piece>
    FMHA_DEVICE void fill_stage(const OperandStream<Piece>&, const kernels::Matrix& matrix,
                                const kernels::MatrixPlace& place, std::int64_t row0, std::int64_t col0) {
        constexpr int map = static_cast<int>(index_of<Piece>());
        const StreamPlan& plan = copied<Piece>();
        const bool in_boxes = plan.boxes() > 1;
        const int feeders = in_boxes ? block_.machine.feeders(block_.plan().feeders) : 1;
        const int feeder = block_.plan().feeders > 1 ? block_.machine.feeder() : 0;
        // Of whole tiles one feeder copies queries and keys, and where there is another one that has the values.
        const bool has_values =
            !in_boxes && Piece == &WsPlan::values && block_.machine.feeders(block_.plan().feeders) > 1;
        const int owner = has_values ? 1 : 0;
        if (!in_boxes && feeder != owner) return;
        Place& next = place_of<Piece>();
        const int stage = next.next(plan.stages), full = plan.full(stage);
        const auto first = static_cast<std::int32_t>(row0) + feeder * plan.box_lines;
        std::int32_t pages[most_boxes] = {};
        if (in_boxes) {
            FMHA_UNROLL
            for (int n = 0; n * feeders < plan.boxes(); ++n)
                pages[n] = page_of(matrix, first + n * feeders * plan.box_lines);
        }
        block_.machine.wait(plan.empty(stage), next.parity(plan.stages) ^ 1);
        if (feeder == owner) block_.machine.expect(full, plan.stage_bytes);
        const MapRows& rows = block_.machine.rows_of(map);
        const auto channel = static_cast<std::int32_t>(col0);
        if (in_boxes) {
            BoxCorner corner = rows.corner({0, place.head, -first}, matrix.rows.size, first);
            const std::int32_t of_head = corner.at[2];
            int to = plan.stage(stage) + SwizzledTile::block_bytes(feeder * plan.lines_together());
            FMHA_UNROLL
            for (int n = 0; n * feeders < plan.boxes(); ++n) {
                if (plan.boxes() % feeders != 0 && n * feeders + feeder >= plan.boxes()) break;
                corner.at[2] = of_head + pages[n] * rows.of_entry;
                copy_lines(plan, map, corner, channel, to, full);
                corner.at[1] += feeders * plan.box_lines;
                corner.at[3] -= feeders * plan.box_lines;
                to += SwizzledTile::block_bytes(feeders * plan.lines_together());
            }
        } else {
            copy_lines(plan, map, rows.corner(place, matrix.rows.size, row0), channel, plan.stage(stage),
                       full);
        }
        ++next.uses;
    }
    /// Waves of the feed wait for the next tile that copies bring and for the next stage of the stream to be empty, and transpose it there.
    template <auto Piece>
    FMHA_DEVICE void transpose_stage(const OperandStream<Piece>&) {
        if constexpr (Block::template may<Piece>(&StreamPlan::transposed)) {
            const StreamPlan &from = copied<Piece>(), &to = block_.template piece<Piece>();
            if (!to.transposed) return;
            Place& next = place_of<Piece>();
            const int source = next.next(from.stages), target = next.next(to.stages);
            block_.machine.wait(from.full(source), next.parity(from.stages));
            block_.machine.wait(to.empty(target), next.parity(to.stages) ^ 1);
            Transposition<Block>(block_).transpose(from, from.stage(source), to.stage(target));
            block_.machine.publish();
            block_.machine.wave_barrier(); // one lane arrives for all
            block_.machine.arrive_wave(from.empty(source), true);
            block_.machine.arrive_wave(to.full(target), true);
            ++next.uses;
        }
    }
    /// A team waits until the next stage of a stream is full.
    template <auto Piece>
    FMHA_DEVICE void take(const OperandStream<Piece>&) {
        const StreamPlan& plan = block_.template piece<Piece>();
        Place& next = place_of<Piece>();
        block_.machine.wait(plan.full(next.next(plan.stages)), next.parity(plan.stages));
        ++next.uses;
    }
    /// A team has no more use for the stage that it took last, if `last`. No branch: products may be under way.
    template <auto Piece>
    FMHA_DEVICE void give(const OperandStream<Piece>&, bool last = true) {
        const StreamPlan& plan = block_.template piece<Piece>();
        block_.machine.arrive_wave(plan.empty(place_of<Piece>().last(plan.stages)), last);
    }

    /// Where the stage that was taken last begins.
    template <auto Piece>
    FMHA_DEVICE int taken(const OperandStream<Piece>&) const {
        const StreamPlan& plan = block_.template piece<Piece>();
        return plan.stage(place_of<Piece>().last(plan.stages));
    }

  private:
    /// How often a stream was filled, transposed, or taken.
    struct Place {
        std::uint32_t uses = 0;

        FMHA_DEVICE static int stage(std::uint32_t use, int stages) {
            return static_cast<int>(use % static_cast<std::uint32_t>(stages));
        }
        FMHA_DEVICE int next(int stages) const { return stage(uses, stages); }
        FMHA_DEVICE int last(int stages) const { return stage(uses - 1, stages); }
        /// Of the barriers of the next stage.
        FMHA_DEVICE int parity(int stages) const {
            return static_cast<int>(uses / static_cast<std::uint32_t>(stages) & 1U);
        }
    };

    Block block_;
    Place places_[count];

    /// What copies of a stream fill.
    template <auto Piece>
    FMHA_DEVICE const StreamPlan& copied() const {
        if constexpr (Piece == &WsPlan::values)
            return block_.plan().copied_values();
        else
            return block_.template piece<Piece>();
    }

    /// The page where row `row` of a matrix lies; any, where there is no such row: its box lies behind the end of the map.
    FMHA_DEVICE static std::int32_t page_of(const kernels::Matrix& matrix, std::int32_t row) {
        return row < static_cast<std::int32_t>(matrix.rows.size)
                   ? matrix.paged.table[row >> matrix.paged.page_bits]
                   : 0;
    }

    /// Starts to copy the lines of a box from channel `channel` on, in parts as wide as a line of LDS.
    FMHA_DEVICE void copy_lines(const StreamPlan& plan, int map, BoxCorner corner, std::int32_t channel,
                                int to, int full) {
        if (plan.by_column)
            corner = {{corner.at[1], channel, corner.at[2], corner.at[3], corner.at[4]}};
        else
            corner.at[0] = channel;
        FMHA_NO_UNROLL
        for (int at = 0; at < plan.elements; at += SwizzledTile::block_elements(plan.type)) {
            block_.machine.copy_box(map, corner, to, full);
            if (plan.interleaved) {
                BoxCorner odd = corner;
                ++odd.at[1];
                block_.machine.copy_box(map, odd, to + SwizzledTile::block_bytes(plan.lines / 2), full);
            }
            corner.at[0] += SwizzledTile::block_elements(plan.type);
            to += SwizzledTile::block_bytes(plan.lines);
        }
    }

    template <auto Piece>
    FMHA_DEVICE Place& place_of() {
        constexpr std::size_t at = index_of<Piece>();
        return places_[at];
    }
    template <auto Piece>
    FMHA_DEVICE const Place& place_of() const {
        constexpr std::size_t at = index_of<Piece>();
        return places_[at];
    }

    FMHA_DEVICE void init_barriers(const StreamPlan& plan) {
        for (int stage = 0; stage < plan.stages; ++stage) {
            block_.machine.init_barrier(plan.full(stage), plan.fillers);
            block_.machine.init_barrier(plan.empty(stage), plan.takers);
        }
    }
};

} // namespace fmha::hip_target
