#pragma once

#include "kernels/targets/hip/register_copies.hpp"
#include "kernels/targets/hip/step_copies.hpp"
#include "kernels/targets/hip/unit_copies.hpp"

#include <cstdint>
#include <type_traits>

namespace fmha::hip_target {

/// The ways of a tile, or of a step of one, from global memory to LDS. `Piece` of the plan is a StagingPlan.
template <class Block, auto Piece>
class TileCopies {
    using Machine = typename Block::Machine;

  public:
    FMHA_DEVICE explicit TileCopies(const Block& block) : block_(block), through_registers_(block) {}

    /// Whether every wave copies those lines of a tile that it alone reads (StagingPlan::line_waves).
    template <auto Operand>
    FMHA_DEVICE bool copies_apart(const kernels::Matrix& matrix) const {
        if (block_.template piece<Piece>().line_waves == 1) return false;
        const OperandPlan& operand = block_.template piece<Operand>();
        return LineView::of(matrix, operand.type, operand.stored_by_column != operand.transposed).aligned;
    }

    /// Copies `extent` depths of a tile of the operand `Operand`, from depth `step` of the tile on, into the layout that the plan
    /// asks for. The tile begins at column `col0` and depth `depth0` of the operand. `units_known`: what the caller knows about its units.
    template <auto Operand>
    FMHA_DEVICE void copy_step(int address, const kernels::Matrix& matrix, std::int64_t col0,
                               std::int64_t depth0, std::int32_t step, std::int32_t extent, Phase phase,
                               Units units_known = Units::unknown) {
        const OperandPlan& operand = block_.template piece<Operand>();
        const ElementType type = operand.type;
        const bool by_column = operand.stored_by_column != operand.transposed;
        const LineView from = view(matrix, type, by_column);
        copy_part<Operand>(address, from, part_of<Operand>(col0, depth0, step, extent, phase, units_known));
        if constexpr (Block::template may<Operand>(&OperandPlan::stored_by_column))
            if constexpr (Block::template may<Operand>(&OperandPlan::has_scales))
                if (phase != Phase::direct)
                    through_registers_.template copy_scales<Operand>(
                        address, matrix, by_column,
                        {col0, depth0 / block_of_scales, operand.columns, 0, step / block_of_scales,
                         operand.columns, operand.scale_blocks, phase});
    }

    /// The lines of a tile, the same for all of its steps.
    template <auto Operand>
    FMHA_DEVICE TileView tile_of(const kernels::Matrix& matrix, std::int64_t col0,
                                 std::int64_t depth0) const {
        const OperandPlan& operand = block_.template piece<Operand>();
        const bool by_column = operand.stored_by_column != operand.transposed;
        return through_registers_.window(view(matrix, operand.type, by_column),
                                         part_of<Operand>(col0, depth0, 0, 0, Phase::direct));
    }
    /// `copy_step` of such a tile.
    template <auto Operand>
    FMHA_DEVICE void copy_step_of(int address, const TileView& tile, std::int32_t step, std::int32_t extent,
                                  Phase phase) {
        copy_part<Operand>(address, tile, part_of<Operand>(0, 0, step, extent, phase));
    }

    FMHA_DEVICE void land() { through_registers_.land(); }

    /// Whether a tile of `lines` lines from row `row0` on, and any below it, can be read in units of 16 bytes (Units::aligned).
    template <auto Operand>
    FMHA_DEVICE bool reads_units(const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0,
                                 int lines) const {
        const LineView from = view(matrix, block_.template piece<Operand>().type, false);
        return Part{row0, col0, lines}.window(from).granule >= 16 && from.lines_near(lines);
    }

    /// Copies `part` line by line to `address`; through registers where it cannot be copied in units of 16 bytes, else in `waves` parts,
    /// each by a wave.
    template <class Lines>
    FMHA_DEVICE void copy_lines(const Image& image, int address, const Lines& from, const Part& part,
                                int waves = 1) {
        if constexpr (may_copy_tiles && std::is_same_v<Lines, LineView>)
            if (block_.template piece<Piece>().async == AsyncCopies::tiles) {
                const int unit = 16 / from.element_size;
                if constexpr (may_gather)
                    if (from.gathered) {
                        const TileView tile = part.window(from);
                        if (tile.granule >= 16)
                            copy_units_async(block_, image, address, tile, part, unit);
                        else
                            through_registers_.template gather_lines<4>(image, address, tile, part, false);
                        return;
                    }
                if constexpr (may_take_heads)
                    if (from.heads.any()) {
                        if (from.aligned && from.head_bytes % 16 == 0)
                            copy_heads_async(block_, image, address, from, part, unit);
                        else
                            through_registers_.template gather_lines<4>(image, address, part.window(from),
                                                                        part, false);
                        return;
                    }
                if (from.aligned)
                    copy_lines_async<Piece>(block_, image, address, from, part.line0 + part.line,
                                            part.element0 + part.element, part.lines, part.elements / unit,
                                            unit, waves);
                else
                    through_registers_.template gather_lines<4>(image, address, part.window(from), part,
                                                                false);
                return;
            }
        constexpr bool through_registers = Block::template may<Piece>(&StagingPlan::copies_through_registers);
        static_assert(may_copy_tiles || through_registers, "lines have a way to LDS");
        if constexpr (through_registers) through_registers_.move_lines(image, address, from, part);
    }

    /// Starts to copy the pages of a tile's rows, which begin at `first` and of which those from `end` on do not exist.
    FMHA_DEVICE void copy_pages(int address, const kernels::PagedRows& paged, std::int64_t first,
                                std::int64_t end) {
        const StagingPlan& plan = block_.template piece<Piece>();
        const std::int64_t page = first >> paged.page_bits,
                           behind = ((end - 1) >> paged.page_bits) + 1 - page;
        const int slots = plan.page_slots, existing = behind < slots ? static_cast<int>(behind) : slots;
        const auto* from = reinterpret_cast<const char*>(paged.table + page);
        const int to = block_.machine.scalar(address);
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int place = thread; place < thread + slots; place += block_.plan().threads)
                if (place < slots)
                    block_.machine.template copy_async<1>(thread, to + 4 * place, from, 4 * place, 4,
                                                          4 * existing);
        });
    }

  private:
    Block block_;
    RegisterCopies<Block, Piece> through_registers_;

    static constexpr bool may_gather = Block::template may<Piece>(&StagingPlan::gathers);
    static constexpr bool may_take_heads = Block::template may<Piece>(&StagingPlan::takes_heads);
    static constexpr bool may_copy_tiles =
        Machine::has_tile_copies && Block::template may<Piece>(&StagingPlan::async, AsyncCopies::tiles);
    static constexpr bool may_copy_steps =
        Machine::has_step_copies && Block::template may<Piece>(&StagingPlan::async, AsyncCopies::steps);

    /// `extent` depths of a tile from depth `step` on, as lines of depths or of columns.
    template <auto Operand>
    FMHA_DEVICE Part part_of(std::int64_t col0, std::int64_t depth0, std::int32_t step, std::int32_t extent,
                             Phase phase, Units units_known = Units::unknown) const {
        const OperandPlan& operand = block_.template piece<Operand>();
        const ElementType type = operand.type;
        if (!operand.stored_by_column)
            return {depth0,          col0,  operand.depth,       step,       0, extent,
                    operand.columns, phase, operand.whole_lines, units_known};
        return {col0,
                storage_units(type, depth0),
                operand.columns,
                0,
                units(type, step),
                operand.columns,
                units(type, extent),
                phase,
                operand.whole_lines,
                units_known};
    }

    FMHA_DEVICE LineView view(const kernels::Matrix& matrix, ElementType type, bool by_column) const {
        if constexpr (may_gather)
            if (block_.template piece<Piece>().gathers) return LineView::of_pages(matrix, type, by_column);
        return LineView::of(matrix, type, by_column);
    }

    /// `part` of lines of a matrix, or of a tile of them.
    template <auto Operand, class Lines>
    FMHA_DEVICE void copy_part(int address, const Lines& from, const Part& part) {
        const OperandPlan& operand = block_.template piece<Operand>();
        if constexpr (Block::template may<Operand>(&OperandPlan::stored_by_column, false))
            if (!operand.stored_by_column) {
                copy_depths<Operand>(address, from, part);
                return;
            }
        if constexpr (Block::template may<Operand>(&OperandPlan::stored_by_column))
            copy_columns<Operand>(address, from, part);
    }

    /// `part` of lines of depths.
    template <auto Operand, class Lines>
    FMHA_DEVICE void copy_depths(int address, const Lines& from, const Part& part) {
        const OperandPlan& operand = block_.template piece<Operand>();
        if constexpr (may_copy_steps)
            if (part.phase == Phase::direct) {
                copy_direct<Operand>(address, through_registers_.window(from, part), part, false);
                return;
            }
        if constexpr (Block::template may<Operand>(&OperandPlan::by_column))
            if (operand.by_column) {
                through_registers_.template transpose_lines<Operand>(address, from, part);
                return;
            }
        if constexpr (Block::template may<Operand>(&OperandPlan::by_column, false))
            copy_lines(operand.image, address, from, part, block_.template piece<Piece>().line_waves);
    }

    /// `part` of lines of columns.
    template <auto Operand, class Lines>
    FMHA_DEVICE void copy_columns(int address, const Lines& from, const Part& part) {
        const OperandPlan& operand = block_.template piece<Operand>();
        if constexpr (may_copy_steps)
            if (part.phase == Phase::direct) {
                copy_direct<Operand>(address, through_registers_.window(from, part), part,
                                     !operand.order.natural);
                return;
            }
        if constexpr (Block::template may<Operand>(&OperandPlan::scatters, false))
            if (!operand.scatters()) {
                copy_lines(operand.image, address, from, part, block_.template piece<Piece>().line_waves);
                return;
            }
        if constexpr (Block::template may<Operand>(&OperandPlan::scatters))
            through_registers_.template scatter_lines<Operand>(address, from, part);
    }

    /// Starts to copy `part` straight to LDS; unaligned lines go through registers at once. `by_place`: a
    /// line is a column, whose elements have places of their own.
    template <auto Operand>
    FMHA_DEVICE void copy_direct(int address, const TileView& tile, const Part& part, bool by_place) {
        const Image& image = block_.template piece<Operand>().image;
        const int words = block_.template piece<Operand>().copy_words;
        const auto copied = [&](auto unit) {
            constexpr int count = unit;
            if constexpr (may_gather)
                if (block_.template piece<Piece>().gathers)
                    return copy_in_places<count, Piece, Operand>(block_, image, address, tile, part,
                                                                 by_place);
            return copy_consecutive<count, Piece, Operand>(block_, image, address, tile, part, by_place);
        };
        if constexpr (Machine::has_step_copies)
            if (words == 4 ? copied(std::integral_constant<int, 4>{})
                           : copied(std::integral_constant<int, 1>{}))
                return;
        // Waits count the copies that are under way behind a step, and this is none.
        if constexpr (Machine::has_step_copies)
            if (block_.template piece<Piece>().buffers > 2) block_.machine.wait_single_copies(0);
        const int patch = by_place ? through_registers_.template patch_words<Operand>() : 4;
        if (patch == 4)
            through_registers_.template gather_lines<4, Operand>(image, address, tile, part, by_place);
        else if (patch == 2)
            through_registers_.template gather_lines<2, Operand>(image, address, tile, part, by_place);
        else
            through_registers_.template gather_lines<1, Operand>(image, address, tile, part, by_place);
    }
};

} // namespace fmha::hip_target
