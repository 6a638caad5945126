#pragma once

#include "kernels/programs/key_loop.hpp"
#include "kernels/targets/hip/key_descales.hpp"
#include "kernels/targets/hip/tile_copies.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fmha::hip_target {

/// The result of `load_transposed` and `load` of a right operand: a place in LDS. `Piece` of the plan is its OperandPlan.
template <auto Piece>
struct OperandStep {
    std::int32_t address = 0; ///< of the stage
    std::int32_t depth0 = 0;  ///< of the step in the stage
};

/// When right operands come to LDS, and where to. For every tile that a program visits, it works on those of `Operands`,
/// OperandPlans of the plan, one after another. They come as whole tiles or step by step; while a step is worked on, the
/// next one is `fetched`: copied asynchronously, or read into registers. `arrive` waits for it. `Piece` of the plan is the
/// StagingPlan.
template <class Block, auto Piece, auto... Operands>
class Staging {
    using Machine = typename Block::Machine;

    static constexpr std::size_t count = sizeof...(Operands);
    static constexpr bool takes_many = Machine::has_step_copies && count == 2;
    static constexpr std::common_type_t<decltype(Operands)...> all[count] = {Operands...};
    template <auto Operand>
    FMHA_DEVICE static constexpr std::size_t index_of() {
        std::size_t at = 0;
        while (all[at] != Operand) ++at;
        return at;
    }

  public:
    FMHA_DEVICE explicit Staging(const Block& block) : block_(block), copies_(block) {}

    FMHA_DEVICE bool tiles_ahead() const { return plan().tiles_ahead; }
    FMHA_DEVICE auto counts_tiles() const {
        if constexpr (Block::template may<Piece>(&StagingPlan::counts_tiles))
            return plan().counts_tiles;
        else
            return std::false_type{};
    }

    FMHA_DEVICE void visit(const kernels::FwdItem&, std::int64_t) {
        stage_ ^= 1;
        started_ = true;
        more_ = false;
    }

    /// Starts to bring the pages of rows [first, end) to LDS, those of one tile, and says where to: every wave has left the place, and
    /// meets others before it asks for a row.
    FMHA_DEVICE std::int64_t look_up(const kernels::PagedRows& paged, std::int64_t first, std::int64_t end) {
        if constexpr (Machine::has_step_copies)
            if (plan().pages_ahead) {
                pages_ ^= 1;
                const int to = plan().pages_at + pages_ * plan().ahead_bytes();
                copies_.copy_pages(to, paged, first, end);
                block_.machine.commit_copies();
                if (!looked_up_) {
                    block_.machine.wait_single_copies(0);
                    block_.machine.barrier();
                }
                looked_up_ = true;
                return to;
            }
        return 0;
    }

    FMHA_DEVICE bool descales_ahead() const requires(Machine::has_step_copies) {
        return plan().descale_slots > 0;
    }
    /// Starts to bring the descales of the keys of the next tile to LDS, ahead of the keys: who waits for these has them. That of the first
    /// key is `number`, which is called for keys of the tile that exist, `keys` of them; with the page, where `look_up` knows it.
    template <class Number>
    FMHA_DEVICE void prefetch_descales(const kernels::PagedRows& paged, int keys, Number number) {
        KeyDescales<Block, Piece>(block_).bring(stage_ ^ 1, paged, keys, number);
    }
    /// tile[r, c] *= row[r] · the descale of key c of the tile that is worked on.
    template <class Tile, class Rows>
    FMHA_DEVICE void descale(Tile& tile, const Rows& rows) {
        KeyDescales<Block, Piece>(block_).apply(stage_, tile, rows);
    }

    template <auto Operand>
    FMHA_DEVICE void prefetch(const OperandStep<Operand>&, const kernels::Matrix& matrix, std::int64_t row0,
                              std::int64_t col0) {
        constexpr std::size_t at = index_of<Operand>();
        const bool transposed = plan_of<Operand>().transposed;
        matrices_[at] = matrix;
        columns_[at] = transposed ? row0 : col0;
        depths_[at] = transposed ? col0 : row0;
        if constexpr (Block::template may<Piece>(&StagingPlan::counts_tiles))
            if (starts_from_tile<Operand>()) {
                TileView tile =
                    copies_.template tile_of<Operand>(matrix, columns_[at], transposed ? 0 : row0);
                tile.data = block_.machine.scalar(tile.data);
                tiles_[at] = tile;
            }
        if (async() == AsyncCopies::tiles) {
            // Of the first operand, or of all, those of the next tile.
            const bool next = at == 0 || plan().tiles_ahead;
            if (apart_ && plan().line_waves > 1 && !copies_.template copies_apart<Operand>(matrix)) {
                apart_ = false;
                block_.machine.barrier(); // until now nobody has waited for others to leave that stage
            }
            copy<Operand>(matrix, place<Operand>(next ? stage_ ^ 1 : stage_), columns_[at], depths_[at],
                          plan_of<Operand>().depth, Phase::whole);
            return;
        }
        if constexpr (at == 0) more_ = true;
        if constexpr (takes_many)
            if (plan().buffers > 2) {
                start_due<Operand>();
                block_.machine.together();
                return;
            }
        if constexpr (at == 0)
            if (!started_) fetch<Operand>(matrix, columns_[at], depths_[at]);
    }
    FMHA_DEVICE void commit() {
        if constexpr (Machine::has_tile_copies)
            if (async() == AsyncCopies::tiles) block_.machine.commit_copies();
    }
    FMHA_DEVICE void wait(int groups) {
        if constexpr (Machine::has_tile_copies)
            if (async() == AsyncCopies::tiles) {
                block_.machine.wait_copies(groups);
                // Copies that all threads share, the query first of all, are there when all of them have come.
                if (plan().line_waves > 1 && apart_ && met_)
                    block_.machine.wave_barrier();
                else
                    block_.machine.barrier();
                met_ = true;
            }
    }

    template <auto Operand>
    FMHA_DEVICE void load_transposed(OperandStep<Operand>& step, const kernels::Matrix& matrix,
                                     std::int64_t row0, std::int64_t col0) {
        load_step(step, matrix, row0, col0);
    }
    template <auto Operand>
    FMHA_DEVICE void load(OperandStep<Operand>& step, const kernels::Matrix& matrix, std::int64_t row0,
                          std::int64_t col0) {
        load_step(step, matrix, col0, row0);
    }

  private:
    Block block_;
    int stage_ = 1;  ///< of the tile that is being worked on; `visit` turns to the next
    int buffer_ = 0; ///< of the step that is being worked on
    // Where the steps after an operand's last ones come from.
    kernels::Matrix matrices_[count];
    std::int64_t columns_[count] = {}, depths_[count] = {};
    TileView tiles_[count]; ///< of operands that `starts_from_tile`
    bool started_ = false, more_ = false;
    int pages_ = 1; ///< where the newest pages of a tile are
    bool looked_up_ = false;
    bool apart_ = true, met_ = false; ///< waves copy and read lines of their own; they have met once
    TileCopies<Block, Piece> copies_;

    template <auto Operand>
    FMHA_DEVICE const OperandPlan& plan_of() const {
        return block_.template piece<Operand>();
    }
    FMHA_DEVICE const StagingPlan& plan() const { return block_.template piece<Piece>(); }
    FMHA_DEVICE AsyncCopies async() const { return plan().async; }

    template <auto Operand>
    FMHA_DEVICE int place(int stage) const {
        return plan_of<Operand>().image.offset + stage * plan_of<Operand>().stage;
    }
    /// A depth of the matrix in its tile. Tiles of an operand that is transposed have all of the depth.
    template <auto Operand>
    FMHA_DEVICE std::int32_t in_tile(std::int64_t depth) const {
        if (plan_of<Operand>().transposed) return static_cast<std::int32_t>(depth);
        return static_cast<std::int32_t>(static_cast<std::uint64_t>(depth) %
                                         static_cast<std::uint64_t>(plan_of<Operand>().depth));
    }

    /// What the steps of a tile share is found once.
    template <auto Operand>
    FMHA_DEVICE bool starts_from_tile() const {
        return plan().counts_tiles && async() != AsyncCopies::tiles && !plan().gathers &&
               !plan_of<Operand>().has_scales();
    }

    template <auto Operand>
    FMHA_DEVICE void copy(const kernels::Matrix& matrix, int address, std::int64_t column, std::int64_t depth,
                          int extent, Phase phase) {
        const std::int32_t step = in_tile<Operand>(depth);
        if constexpr (Block::template may<Piece>(&StagingPlan::counts_tiles))
            if (starts_from_tile<Operand>()) {
                copies_.template copy_step_of<Operand>(address, tiles_[index_of<Operand>()], step, extent,
                                                       phase);
                return;
            }
        const std::int64_t depth0 = plan_of<Operand>().transposed ? 0 : depth - step;
        copies_.template copy_step<Operand>(address, matrix, column, depth0, step, extent, phase);
    }

    template <auto Operand>
    FMHA_DEVICE void load_step(OperandStep<Operand>& step, const kernels::Matrix& matrix, std::int64_t column,
                               std::int64_t depth) {
        const std::int32_t first = in_tile<Operand>(depth);
        if (async() == AsyncCopies::tiles) {
            step = {place<Operand>(stage_), first};
            return;
        }
        if constexpr (Block::template may<Operand>(&OperandPlan::joins_steps))
            if (const int part = first % plan_of<Operand>().step; part != 0) {
                step.depth0 = part; // it came with the part before
                return;
            }
        if constexpr (takes_many)
            if (plan().buffers > 2) {
                step = {arrive_of_many<Operand>(first / plan_of<Operand>().step), 0};
                return;
            }
        const int extent = plan_of<Operand>().step;
        step = {arrive(plan_of<Operand>().copy_words > 0, reads_ahead<Operand>(),
                       [&](int address, Phase phase) {
                           copy<Operand>(matrix, address, column, depth, extent, phase);
                       }),
                0};
        constexpr std::size_t next = index_of<Operand>() + 1;
        if (first + plan_of<Operand>().step < plan_of<Operand>().depth)
            fetch<Operand>(matrix, column, depth + plan_of<Operand>().step);
        else if constexpr (next < count)
            fetch<all[next]>(matrices_[next], columns_[next], depths_[next]);
        else if (more_)
            fetch<all[0]>(matrices_[0], columns_[0], depths_[0]);
    }

    template <auto Operand>
    FMHA_DEVICE bool reads_ahead() const {
        return plan().read_ahead && (index_of<Operand>() == 0 || !plan().keys_alone);
    }

    /// The next step after the present one, into the other buffer: every wave has left it, since all of
    /// them have come to the present step.
    template <auto Operand>
    FMHA_DEVICE void fetch(const kernels::Matrix& matrix, std::int64_t column, std::int64_t depth) {
        const int extent = plan_of<Operand>().step;
        if (plan_of<Operand>().copy_words > 0) {
            copy<Operand>(matrix, place<Operand>(buffer_ ^ 1), column, depth, extent, Phase::direct);
            if constexpr (Machine::has_step_copies) block_.machine.commit_copies();
        } else if (reads_ahead<Operand>()) {
            copy<Operand>(matrix, 0, column, depth, extent, Phase::read);
            if (plan().reads_first) block_.machine.reads_first();
        }
    }

    /// With more than two buffers: steps of a tile are numbered, those of the second operand behind those of the first, and so is the
    /// buffer of each. While one is worked on, the next `buffers` − 2 are under way, and the one behind them is started, into the
    /// buffer that all waves have left.
    FMHA_DEVICE int first_steps() const { return plan_of<all[0]>().steps(); }
    FMHA_DEVICE int all_steps() const { return first_steps() + plan_of<all[1]>().steps(); }
    FMHA_DEVICE int place_of_step(int number) const { return place<all[0]>(number % plan().buffers); }

    template <auto Operand>
    FMHA_DEVICE void start_step(int step) {
        constexpr std::size_t at = index_of<Operand>();
        const int extent = plan_of<Operand>().step;
        copy<Operand>(matrices_[at], place_of_step(at == 0 ? step : first_steps() + step), columns_[at],
                      depths_[at] + step * extent, extent, Phase::direct);
        block_.machine.commit_copies();
    }
    /// Steps of an operand whose matrix was not known when their buffers were left.
    template <auto Operand>
    FMHA_DEVICE void start_due() {
        const int ahead = plan().buffers - 1, others = all_steps() - plan_of<Operand>().steps();
        if (index_of<Operand>() == 0 && !started_)
            start_steps<Operand>(ahead); // nothing is under way
        else
            start_steps<Operand>(ahead - others);
    }
    /// The first `number` steps of the operand, if it has so many.
    template <auto Operand>
    FMHA_DEVICE void start_steps(int number) {
        FMHA_UNROLL
        for (int step = 0; step < number && step < plan_of<Operand>().steps(); ++step)
            start_step<Operand>(step);
    }

    /// The address of a step of the operand, when it is there for all. Behind it are under way those steps whose matrix is known.
    template <auto Operand>
    FMHA_DEVICE int arrive_of_many(int step) {
        constexpr bool second = index_of<Operand>() == 1;
        const int firsts = first_steps(), steps = all_steps();
        const int number = second ? firsts + step : step, known = second ? steps + firsts : steps;
        const int next = number + plan().buffers - 1;
        if (second && next >= steps && !more_) {
            meet(number, steps);
            return place_of_step(number);
        }
        meet(number, next < known ? next : known);
        if (next < firsts)
            start_step<all[0]>(next);
        else if (next < steps)
            start_step<all[1]>(next - firsts);
        else if (next < known)
            start_step<all[0]>(next - steps);
        return place_of_step(number);
    }
    /// Returns when a step is there for all, while those behind it, up to `end`, may be under way.
    FMHA_DEVICE void meet(int number, int end) {
        const int threads = block_.plan().threads;
        int copies = 0;
        FMHA_UNROLL
        for (int behind = number + 1; behind < end; ++behind)
            copies += behind % all_steps() < first_steps() ? plan_of<all[0]>().copies(threads)
                                                           : plan_of<all[1]>().copies(threads);
        block_.machine.wait_single_copies(copies);
        block_.machine.barrier();
    }

    /// The address of the step that the program asks for, when it is there for all: by the copy that was started
    /// before, or by copy(address, phase) now, of what was read ahead or of all.
    template <class Copy>
    FMHA_DEVICE int arrive(bool fetched, bool read, Copy copy) {
        if constexpr (Machine::has_step_copies)
            if (fetched) {
                block_.machine.wait_single_copies(0);
                block_.machine.barrier();
                return place<all[0]>(buffer_ ^= 1);
            }
        const int address = place<all[0]>(next_buffer());
        copy(address, read ? Phase::write : Phase::whole);
        copies_.land();
        // What the next tile needs first was asked for before what has just arrived, or with the first step of this one.
        if constexpr (Machine::has_step_copies)
            if (plan().ahead_bytes() > 0) block_.machine.wait_single_copies(0);
        block_.machine.barrier();
        return address;
    }

    /// The buffer for the next step. With two, the barrier after the copy into the other one has already seen
    /// every wave leave this one; with one, that takes a barrier of its own.
    FMHA_DEVICE int next_buffer() {
        if (plan_of<all[0]>().stage == 0) {
            block_.machine.barrier();
            return 0;
        }
        return buffer_ ^= 1;
    }
};

} // namespace fmha::hip_target
