#pragma once

#include "kernels/targets/hip/backward_plan.hpp"
#include "kernels/targets/hip/tile_memory.hpp"

#include <bit>
#include <cstdint>

namespace fmha::hip_target {

/// One value a query, which comes with the tile of queries: LSE or D. `Piece` of the plan is its StreamedRowsPlan.
template <auto Piece, class Registers>
struct StreamedRows : RowValues<Registers> {};

/// The ways of such values: through LDS, to which they come as Q and dO do, or straight to registers.
template <class Block>
class RowStreams {
    using Machine = typename Block::Machine;

  public:
    FMHA_DEVICE explicit RowStreams(const Block& block)
        : block_(block), memory_(block), ahead_(block.template registers<float, 2>()) {}

    template <auto Piece>
    FMHA_DEVICE auto rows() const {
        using Registers = typename Block::template Registers<float, &BackwardPlan::rows, &RowPlan::registers>;
        return StreamedRows<Piece, Registers>{
            {block_.template registers<float, &BackwardPlan::rows, &RowPlan::registers>()}};
    }

    template <auto Piece>
    FMHA_DEVICE bool in_lds() const {
        return block_.template piece<Piece>().stage != 0;
    }
    /// Whether `copy` may read values into registers.
    FMHA_DEVICE bool rows_near(const kernels::Matrix& matrix) const {
        return LineView::of(matrix, ElementType::fp32).lines_near(plan().block_rows);
    }
    /// Starts to copy the values of a tile to LDS, or reads them into registers, or writes those there; 0 for rows that do not exist.
    /// Read, by a buffer whose end says which of them exist: a branch would wait for all reads that are under way.
    template <auto Piece>
    FMHA_DEVICE void copy(int stage, const kernels::Matrix& matrix, std::int64_t row0, Phase phase) {
        const StreamedRowsPlan& streamed = block_.template piece<Piece>();
        const int count = plan().block_rows, to = streamed.offset + stage * streamed.stage;
        constexpr int kept = Piece == &BackwardPlan::normalisers ? 0 : 1;
        const LineView lines = LineView::of(matrix, ElementType::fp32);
        if constexpr (Machine::ends_buffers)
            if (phase == Phase::read) {
                const TileView from = lines.near_window(row0, 0, count);
                const int line_bytes = static_cast<int>(from.line_bytes);
                block_.machine.each([&](int thread) {
                    std::uint32_t word[1];
                    const int row = thread < count ? thread : 0;
                    block_.machine.template global_read<1>(thread, from.data, row * line_bytes,
                                                           thread < count, word,
                                                           bytes_of_lines(from.lines, line_bytes, 4));
                    ahead_.at(thread, kept) = std::bit_cast<float>(word[0]);
                });
                return;
            }
        const TileView from = lines.window(row0, 0, count);
        if constexpr (Machine::has_tile_copies)
            if (block_.plan().staging.async == AsyncCopies::tiles) {
                block_.machine.each([&](int thread) {
                    if (thread >= count) return;
                    const bool exists = thread < from.lines;
                    block_.machine.template copy_async<1>(
                        thread, to + 4 * thread, exists ? from.at(thread, 0) : from.data, 0, exists ? 4 : 0);
                });
                return;
            }
        block_.machine.each([&](int thread) {
            std::uint32_t word[1] = {std::bit_cast<std::uint32_t>(ahead_.at(thread, kept))};
            if (phase == Phase::write) {
                if (thread < count) block_.machine.template lds_write<1>(thread, to + 4 * thread, word);
                return;
            }
            FMHA_NO_UNROLL
            for (int row = 0; row < count; ++row) {
                block_.machine.template global_read_at<1>(thread, from.at(row, 0),
                                                          row < from.lines && thread == 0, word);
                if (thread == 0) block_.machine.template lds_write<1>(thread, to + 4 * row, word);
            }
        });
    }
    /// The copied rows, to registers.
    template <auto Piece, class Registers>
    FMHA_DEVICE void read(int stage, StreamedRows<Piece, Registers>& values) {
        const StreamedRowsPlan& streamed = block_.template piece<Piece>();
        const int from = streamed.offset + stage * streamed.stage;
        const bool pairs = plan().slots == 2 && plan().row_of_slot[1] == 1;
        const bool quads = plan().slots == 4 && plan().row_of_slot[1] == 1 && plan().row_of_slot[3] == 3;
        block_.machine.each([&](int thread) {
            const int row1 = plan().row.of_lane(block_.lane(thread));
            const auto address = [&](int s) {
                return from + 4 * (row1 + s / plan().slots * plan().tile_rows +
                                   plan().row_of_slot[s % plan().slots]);
            };
            std::uint32_t words[4];
            if (quads) {
                FMHA_UNROLL
                for (int s = 0; s < plan().registers; s += 4) {
                    block_.machine.template lds_read<4>(thread, address(s), words);
                    FMHA_UNROLL
                    for (int i = 0; i < 4; ++i) values.x.at(thread, s + i) = std::bit_cast<float>(words[i]);
                }
                return;
            }
            if (pairs) {
                FMHA_UNROLL
                for (int s = 0; s < plan().registers; s += 2) {
                    block_.machine.template lds_read<2>(thread, address(s), words);
                    values.x.at(thread, s) = std::bit_cast<float>(words[0]);
                    values.x.at(thread, s + 1) = std::bit_cast<float>(words[1]);
                }
                return;
            }
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s) {
                block_.machine.template lds_read<1>(thread, address(s), words);
                values.x.at(thread, s) = std::bit_cast<float>(words[0]);
            }
        });
    }
    /// The values of a tile from memory to registers.
    template <class Registers>
    FMHA_DEVICE void load(RowValues<Registers>& values, const kernels::Matrix& matrix, std::int64_t row0) {
        if constexpr (!Machine::reads_rows_by_offset) return memory_.load(values, matrix, row0);
        const RowPlan& rows = plan();
        const TileView from = LineView::of(matrix, ElementType::fp32).window(row0, 0, rows.block_rows);
        block_.machine.each([&](int thread) {
            const int row1 = rows.row.of_lane(block_.lane(thread));
            const char* const base = from.at(row1, 0);
            FMHA_UNROLL
            for (int s = 0; s < rows.registers; ++s) {
                const int row = s / rows.slots * rows.tile_rows + rows.row_of_slot[s % rows.slots];
                values.x.at(thread, s) = row1 + row < from.lines
                                             ? *reinterpret_cast<const float*>(base + row * from.line_bytes)
                                             : 0.0F;
            }
        });
    }

  private:
    Block block_;
    TileMemory<Block, &BackwardPlan::rows> memory_;
    typename Block::template Registers<float, 2> ahead_; ///< LSE and D of the next tile, of a row each thread

    FMHA_DEVICE const RowPlan& plan() const { return block_.plan().rows; }
};

} // namespace fmha::hip_target
