#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/targets/hip/ws_plan.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// A stream of the plan; `Piece` is its StreamPlan.
template <auto Piece>
struct OperandStream {
    static constexpr auto piece = Piece;
};

/// Where the feed and the teams of a block meet: streams, turns, and who runs what. `Streams` of the plan are all of its StreamPlans.
template <class Block, auto... Streams>
class TeamWork {
    static constexpr std::size_t count = sizeof...(Streams);
    static constexpr StreamPlan WsPlan::*all[] = {Streams...};
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

    /// Warp group 0 is the feed and runs `fills` for steps 0 to `steps` − 1; the others are teams.
    template <class Fills, class Team>
    FMHA_DEVICE void run(int steps, Fills fills, Team team) {
        (init_barriers<Streams>(), ...);
        block_.machine.barriers_ready();
        if (block_.machine.group() == 0) {
            block_.machine.release_registers();
            FMHA_NO_UNROLL
            for (int step = 0; step < steps; ++step) fills(step);
            block_.machine.commit_copies();
            block_.machine.wait_copies(0);
        } else {
            block_.machine.claim_registers();
            // The last team gives the first one its first turn.
            if (block_.plan().takes_turns && block_.machine.group() == block_.plan().teams)
                block_.machine.pass(1);
            team();
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
    /// `matrix`. What does not exist is 0.
    template <auto Piece>
    FMHA_DEVICE void fill_stage(const OperandStream<Piece>&, const kernels::Matrix& matrix, std::int64_t row0,
                                std::int64_t col0) {
        const auto plan = [&]() -> const StreamPlan& { return block_.template piece<Piece>(); };
        Place& next = place_of<Piece>();
        block_.machine.wait(plan().empty(next.stage), next.phase ^ 1);
        const LineView from = LineView::of(matrix, plan().type);
        const int address = plan().stage(next.stage), full = plan().full(next.stage);
        if (from.aligned) {
            copy_units<Piece>(address, from, row0, col0);
            block_.machine.arrive_copied(full);
        } else {
            gather_units<Piece>(address, from, row0, col0);
            block_.machine.arrive(full);
        }
        next.advance(plan().stages);
    }
    /// A team waits until the next stage of a stream is full.
    template <auto Piece>
    FMHA_DEVICE void take(const OperandStream<Piece>&) {
        const StreamPlan& plan = block_.template piece<Piece>();
        Place& next = place_of<Piece>();
        block_.machine.wait(plan.full(next.stage), next.phase);
        block_.machine.publish();
        next.advance(plan.stages);
    }
    /// A team has no more use for the stage that it took last.
    template <auto Piece>
    FMHA_DEVICE void give(const OperandStream<Piece>&) {
        const StreamPlan& plan = block_.template piece<Piece>();
        block_.machine.arrive_wave(plan.empty(place_of<Piece>().last(plan.stages)));
    }

    /// Where the stage that was taken last begins.
    template <auto Piece>
    FMHA_DEVICE int taken(const OperandStream<Piece>&) const {
        const StreamPlan& plan = block_.template piece<Piece>();
        return plan.stage(place_of<Piece>().last(plan.stages));
    }

  private:
    struct Place {
        int stage = 0, phase = 0;

        FMHA_DEVICE void advance(int stages) {
            if (++stage == stages) {
                stage = 0;
                phase ^= 1;
            }
        }
        FMHA_DEVICE int last(int stages) const { return (stage == 0 ? stages : stage) - 1; }
    };
    static constexpr int unit_bytes = 16, unit_elements = 8,
                         line_units = SwizzledTile::line_bytes / unit_bytes;

    Block block_;
    Place places_[count];

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

    template <auto Piece>
    FMHA_DEVICE void init_barriers() {
        const StreamPlan& plan = block_.template piece<Piece>();
        for (int stage = 0; stage < plan.stages; ++stage) {
            block_.machine.init_barrier(plan.full(stage), WsPlan::group_threads);
            block_.machine.init_barrier(plan.empty(stage), block_.plan().waves_of_teams());
        }
    }

    /// A thread copies the same unit of every sixteenth line, block of columns by block of columns.
    template <auto Piece>
    FMHA_DEVICE void copy_units(int address, const LineView& from, std::int64_t row0, std::int64_t col0) {
        constexpr int down = WsPlan::group_threads / line_units;
        block_.machine.each([&](int thread) {
            const int lines = block_.template piece<Piece>().lines;
            const int line = thread / line_units, column = thread % line_units;
            const std::int64_t below = from.lines - row0 - line;
            const int existing = below < 0 ? 0 : below < lines ? static_cast<int>(below) : lines;
            const int first =
                SwizzledTile::swizzled(address + line * SwizzledTile::line_bytes + column * unit_bytes);
            FMHA_UNROLL
            for (int block = 0;
                 block * SwizzledTile::block_elements < block_.template piece<Piece>().elements; ++block) {
                const std::int64_t element =
                    col0 + block * SwizzledTile::block_elements + column * unit_elements;
                const int bytes = from.existing(0, element, unit_elements) * from.element_size;
                const char* source = from.at(row0 + line, element);
                int to = first + block * SwizzledTile::block_bytes(lines);
                FMHA_PIPELINED
                for (int i = 0; i < lines; i += down) {
                    block_.machine.template copy_async<4>(thread, to, source, 0, i < existing ? bytes : 0);
                    source += down * from.line_bytes;
                    to += down * SwizzledTile::line_bytes;
                }
            }
        });
    }

    /// The same of lines that cannot be copied in units: element by element through registers.
    template <auto Piece>
    FMHA_DEVICE void gather_units(int address, const LineView& from, std::int64_t row0, std::int64_t col0) {
        block_.machine.each([&](int thread) {
            const int lines = block_.template piece<Piece>().lines;
            const int units = block_.template piece<Piece>().stage_bytes / unit_bytes;
            FMHA_NO_UNROLL
            for (int at = thread; at < units; at += WsPlan::group_threads) {
                const int line = at / line_units % lines, column = at % line_units;
                const int block = at / line_units / lines;
                const int element = block * SwizzledTile::block_elements + column * unit_elements;
                const TileView view = from.window(row0, col0, lines);
                Words<4> words{};
                view.gather(line, element, words);
                block_.machine.template lds_write<4>(
                    thread,
                    SwizzledTile::swizzled(address + block * SwizzledTile::block_bytes(lines) +
                                           line * SwizzledTile::line_bytes + column * unit_bytes),
                    words.word);
            }
        });
    }
};

} // namespace fmha::hip_target
