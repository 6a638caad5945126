#pragma once

#include "kernels/targets/hip/operand_reads.hpp"
#include "kernels/targets/hip/tile_copies.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// A left operand that is loaded as a whole and stays while right ones stream past. `Piece` of the plan is its
/// LeftOperandPlan.
template <auto Piece, class Registers>
struct LeftOperand {
    Registers x;     ///< OperandPlace::registers: its fragments, row tile by row tile
    TileView memory; ///< OperandPlace::memory

    template <class Block>
    FMHA_DEVICE static bool in_registers(const Block& block) {
        return block.template piece<Piece>().place == OperandPlace::registers;
    }
    /// Whether it may be read again for every product, and whether it may be in registers.
    template <class Block>
    FMHA_DEVICE static constexpr bool may_stream() {
        return Block::template may<Piece>(&LeftOperandPlan::streams);
    }
    template <class Block>
    FMHA_DEVICE static constexpr bool may_stay() {
        return Block::template may<Piece>(&LeftOperandPlan::streams, false);
    }
};

/// A left operand of which nothing has been loaded.
template <auto Piece, class Block>
FMHA_DEVICE auto left_operand(const Block& block) {
    auto x = block.template registers<std::uint32_t, Piece, &LeftOperandPlan::words>();
    return LeftOperand<Piece, decltype(x)>{x, {}};
}

/// Left fragment `fragment` of row tile `row` from global memory.
template <auto Product, class Block, auto Piece, class Held, class Registers>
FMHA_DEVICE void read_left(const Block& block, int thread, const LeftOperand<Piece, Held>& left, int row,
                           int fragment, Registers& out, int r0) {
    const ProductPlan& p = block.template piece<Product>();
    const ElementType type = block.template piece<Piece>().type;
    const int line =
        p.acc.row_of_wave(block.wave(thread)) + row * p.acc.rows + p.left_outer.of_lane(block.lane(thread));
    // When it is read for every product, lanes keep one place, and scalars go from fragment to fragment, each computed at its use.
    const bool streams = block.template piece<Piece>().place == OperandPlace::memory;
    const int first = streams ? block.machine.scalar(units(type, fragment * p.depth)) : 0;
    const bool shares_depth = p.left_k.of_lane(63) == 0;
    const auto read = [&]<int count>(Words<count>, int w) {
        const int element =
            (streams ? 0 : fragment * p.depth) + p.left_k.at(block.lane(thread), w * 32 / element_bits(type));
        const auto words =
            streams ? left.memory.template read_again<count>(block.machine, thread, {0, first}, line,
                                                             units(type, element), shares_depth)
                    : left.memory.template read<count>(block.machine, thread, line, units(type, element));
        FMHA_UNROLL
        for (int i = 0; i < count; ++i)
            out.at(thread, r0 + w + i) = operand_word(block.machine, words.word[i], type);
    };
    FMHA_UNROLL
    for (int w = 0; w < p.left_words; w += p.left_words % 4 == 0 ? 4 : p.left_words) {
        if (p.left_words % 4 == 0)
            read(Words<4>{}, w);
        else if (p.left_words == 2)
            read(Words<2>{}, w);
        else
            read(Words<1>{}, w);
    }
}

/// The same from memory or LDS, where the operand is not in registers; for all threads. `stage`: bytes from its image in LDS to the one
/// that is read; `first`: the register of row tile 0.
template <auto Product, class Block, auto Piece, class Held, class Registers>
FMHA_DEVICE void stream_left(const Block& block, const LeftOperand<Piece, Held>& left, int row, int fragment,
                             Registers& out, int stage = 0, int first = 0) {
    const ProductPlan& p = block.template piece<Product>();
    const LeftOperandPlan& plan = block.template piece<Piece>();
    const Image& image = plan.image;
    const auto first_line = [&](int thread) {
        return block.template piece<Product>().acc.row_of_wave(block.wave(thread)) + row * p.acc.rows;
    };
    const int r0 = first + row * p.left_fragment;
    if constexpr (Block::template may<Piece>(&LeftOperandPlan::place, OperandPlace::memory))
        if (plan.place == OperandPlace::memory) {
            block.machine.each(
                [&](int thread) { read_left<Product>(block, thread, left, row, fragment, out, r0); });
            return;
        }
    if constexpr (Block::Machine::has_load_matrix)
        if (p.left_matrices()) {
            const auto address = [&](int thread) {
                const int l = block.lane(thread);
                return image.offset + stage + (first_line(thread) + l % 16) * image.line_bytes +
                       (fragment * 16 + l / 16 * 8) * 2;
            };
            block.machine.load_matrix(out, r0, address, false);
            return;
        }
    if constexpr (Block::template may<Product>(&ProductPlan::left_matrices, false)) {
        const int bits = element_bits(plan.type), run = p.left_run * bits / 32;
        block.machine.each([&](int thread) {
            const int l = block.lane(thread);
            FMHA_UNROLL
            for (int w = 0; w < p.left_words; w += run) {
                const int e = w * 32 / bits;
                const int line = first_line(thread) + p.left_outer.at(l, e);
                read_words(block.machine, thread, image.offset + stage, image, line,
                           (fragment * p.depth + p.left_k.at(l, e)) * bits / 8, run,
                           block.template piece<Piece>().type, out, r0 + w);
            }
        });
    }
}

/// A left operand that a block keeps. `Piece` of the plan is its LeftOperandPlan, `Product` the product that
/// takes it, `Copies` the StagingPlan by which it comes to LDS.
template <class Block, auto Piece, auto Product, auto Copies>
class KeptOperand {
    using Held = typename Block::template Registers<std::uint32_t, Piece, &LeftOperandPlan::words>;
    using Kept = LeftOperand<Piece, Held>;

  public:
    FMHA_DEVICE explicit KeptOperand(const Block& block) : block_(block) {}

    FMHA_DEVICE void load(Kept& kept, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0) {
        LineView from = LineView::of(matrix, plan().type);
        from.take_heads(matrix);
        const std::int64_t first = storage_units(plan().type, col0);
        const int fragments = consumer().depth_fragments;
        kept.memory = from.window(row0, first, consumer().acc.block_rows);
        if (plan().place == OperandPlace::memory) kept.memory.whole_lines = plan().whole_lines;
        if constexpr (Block::template may<Piece>(&LeftOperandPlan::place, OperandPlace::lds))
            if (plan().place == OperandPlace::lds)
                TileCopies<Block, Copies>(block_).copy_lines(
                    plan().image, plan().image.offset, from,
                    {row0, first, consumer().acc.block_rows, 0, 0, consumer().acc.block_rows,
                     units(plan().type, fragments * consumer().depth)});
        if constexpr (Block::template may<Piece>(&LeftOperandPlan::place, OperandPlace::registers))
            if (plan().place == OperandPlace::registers) load_fragments(kept, matrix, row0, col0, fragments);
    }

  private:
    Block block_;

    FMHA_DEVICE void load_fragments(Kept& kept, const kernels::Matrix& matrix, std::int64_t row0,
                                    std::int64_t col0, int fragments) {
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int row = 0; row < consumer().acc.row_tiles; ++row) {
                FMHA_UNROLL
                for (int fragment = 0; fragment < fragments; ++fragment)
                    read_left<Product>(block_, thread, kept, row, fragment, kept.x,
                                       (row * fragments + fragment) * consumer().left_fragment);
            }
            read_scales(thread, matrix, row0, col0, kept.x);
            FMHA_UNROLL
            for (int w = 0; w < plan().words; ++w)
                kept.x.at(thread, w) = plan().parked ? block_.machine.parked(kept.x.at(thread, w))
                                                     : block_.machine.arrived(kept.x.at(thread, w));
        });
    }

    FMHA_DEVICE const LeftOperandPlan& plan() const { return block_.template piece<Piece>(); }
    FMHA_DEVICE const ProductPlan& consumer() const { return block_.template piece<Product>(); }

    /// The scale of every fragment, behind its words.
    FMHA_DEVICE void read_scales(int thread, const kernels::Matrix& matrix, std::int64_t row0,
                                 std::int64_t col0, Held& out) {
        const ProductPlan& p = consumer();
        if (p.scale_block == 0) return;
        const TileView from = LineView::of(matrix.block_scales(), ElementType::e8m0)
                                  .window(row0, col0 / block_of_scales, p.acc.block_rows);
        const int fragments = p.depth_fragments, l = block_.lane(thread);
        FMHA_UNROLL
        for (int i = 0; i < p.acc.row_tiles * fragments; ++i) {
            const int line = block_.wave(thread) * p.acc.wave_rows + i / fragments * p.acc.rows +
                             p.left_scale.outer.of_lane(l);
            const int block = (i % fragments * p.depth + p.left_scale.k.of_lane(l)) / p.scale_block;
            out.at(thread, i * p.left_fragment + p.left_words) =
                from.read_byte(block_.machine, thread, line, block);
        }
    }
};

} // namespace fmha::hip_target
