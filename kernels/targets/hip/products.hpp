#pragma once

#include "kernels/targets/hip/accumulator.hpp"
#include "kernels/targets/hip/left_operand.hpp"
#include "kernels/targets/hip/staging.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// A left operand that was made from accumulators: its fragments, row tile by row tile.
template <class Registers>
struct WeightTile {
    Registers x;
    FMHA_DEVICE static constexpr bool in_registers(const auto& /*block*/) { return true; }
    template <class Block>
    FMHA_DEVICE static constexpr bool may_stream() {
        return false;
    }
    template <class Block>
    FMHA_DEVICE static constexpr bool may_stay() {
        return true;
    }
};

/// Matrix products, any number of them: the accumulator says which of the plan it is, the operands where they are.
template <class Block>
class Products {
  public:
    FMHA_DEVICE explicit Products(const Block& block) : block_(block) {}

    /// A GPU works on the whole capacity, because registers need constant numbers; elements that do not exist are 0.
    FMHA_DEVICE int steps(std::int64_t capacity, std::int64_t, std::int64_t step) const {
        return static_cast<int>(capacity / step);
    }

    template <auto Product, class Registers, class Left, auto Right>
    FMHA_DEVICE void product(Accumulator<Product, Registers>& acc, Left& left, int first,
                             const OperandStep<Right>& right, float factor = 1.0F) {
        if constexpr (Block::template may<Product>(&ProductPlan::joins_steps)) {
            const ProductPlan& p = block_.template piece<Product>();
            if (p.joins_steps && first % p.depth != 0) return;
        }
        auto words = block_.template registers<std::uint32_t, Product, &ProductPlan::right_registers>();
        if constexpr (Block::template may<Product>(&ProductPlan::own_factor))
            if (block_.template piece<Product>().own_factor) {
                product_with_factor(acc, left, first, right, factor, words);
                return;
            }
        if constexpr (Block::template may<Product>(&ProductPlan::is_read_ahead))
            if (block_.template piece<Product>().is_read_ahead()) {
                product_ahead(acc, left, first, right, words);
                return;
            }
        if constexpr (Block::template may<Product>(&ProductPlan::own_factor, false) &&
                      Block::template may<Product>(&ProductPlan::is_read_ahead, false))
            plain_product(acc, left, first, right, words);
    }

    /// One fragment of either operand, from registers l0 and r0 on, to the accumulators from c0 on, which are 0 where it `begins`.
    template <class Acc, class Left, class Right>
    FMHA_DEVICE void multiply(const ProductPlan& p, Acc& acc, int c0, Left& left, int l0, Right& right,
                              int r0, [[maybe_unused]] bool begins = false) {
        FMHA_UNROLL
        for (int part = 0; part < p.parts; ++part) {
            const int l = l0 + part * (p.left_words / p.parts), r = r0 + part * (p.right_words / p.parts);
            if constexpr (Block::Machine::begins_products) {
                if (p.transposed)
                    block_.machine.mma(p.instruction, acc, c0, right, r, left, l, begins && part == 0);
                else
                    block_.machine.mma(p.instruction, acc, c0, left, l, right, r, begins && part == 0);
            } else if (p.transposed)
                block_.machine.mma(p.instruction, acc, c0, right, r, left, l);
            else
                block_.machine.mma(p.instruction, acc, c0, left, l, right, r);
        }
    }

    /// Right fragments of column tile `col` (and those that come with it) at depth `step` fragments of the step, to registers from
    /// r0 on.
    template <auto Product, auto Right, class Registers>
    FMHA_DEVICE void read_right(const OperandStep<Right>& from, int col, int step, Registers& out,
                                int r0 = 0) {
        const ProductPlan& p = block_.template piece<Product>();
        const OperandPlan& operand = block_.template piece<Right>();
        const int k0 = from.depth0 + step * p.depth;
        if constexpr (Block::Machine::has_load_matrix)
            if (p.load_matrix) {
                load_matrices<Product>(from.address, operand.image, col, k0, !operand.by_column, out);
                return;
            }
        if constexpr (Block::template may<Product>(&ProductPlan::load_matrix, false))
            read_elements<Product>(from, col, k0, out, r0);
    }

  private:
    Block block_;

    /// A right fragment element by element, or in pieces of a line, from depth `k0` of the stage on, to registers from r0 on.
    template <auto Product, auto Right, class Registers>
    FMHA_DEVICE void read_elements(const OperandStep<Right>& from, int col, int k0, Registers& out, int r0) {
        const ProductPlan& p = block_.template piece<Product>();
        const auto operand = [&]() -> const OperandPlan& { return block_.template piece<Right>(); };
        const Image& image = operand().image;
        const int bits = element_bits(operand().type), run = p.right_run * bits / 32;
        if constexpr (Block::Machine::has_transposing_read)
            if (operand().reads_transposed) {
                const int rows = transposing_read(operand().type).rows;
                FMHA_UNROLL
                for (int e = 0; e < p.right_elements; e += rows)
                    block_.machine.read_transposed(out, r0 + e * bits / 32, operand().type, [&](int thread) {
                        const int l = block_.lane(thread);
                        return from.address +
                               image.at(k0 + operand().order.element[e] + operand().read_depth.of_lane(l),
                                        (p.acc.col_of_wave(block_.wave(thread)) + col * p.acc.cols +
                                         operand().read_column.of_lane(l)) *
                                            bits / 8);
                    });
                return;
            }
        block_.machine.each([&](int thread) {
            const int l = block_.lane(thread);
            const int column =
                p.acc.col_of_wave(block_.wave(thread)) + col * p.acc.cols + p.right_outer.of_lane(l);
            const DepthOrder& order = operand().order;
            if (operand().by_column && order.natural) {
                FMHA_UNROLL
                for (int w = 0; w < p.right_words; w += run)
                    read_words(block_.machine, thread, from.address, image, column,
                               (k0 + p.right_k.at(l, w * 32 / bits)) * bits / 8, run, operand().type, out,
                               r0 + w);
                return;
            }
            if (operand().by_column) { // with places such that a lane's elements follow one another
                const int place = order.place_of(k0 + order.lane.of_lane(l));
                read_words(block_.machine, thread, from.address, image, column, place * bits / 8,
                           p.right_words, operand().type, out, r0);
                return;
            }
            FMHA_UNROLL
            for (int e = 0; e < p.right_elements; ++e) // fp32: an element is a word
                read_some<1>(block_.machine, thread,
                             from.address +
                                 image.at(k0 + order.element[e] + order.lane.of_lane(l), column * bits / 8),
                             operand().type, out, r0 + e);
        });
        read_scales<Right>(p, from.address, col, k0, out, r0);
    }

    /// The register where fragment `fragment` of row tile `row` of a left operand begins.
    FMHA_DEVICE static int fragment_at(const ProductPlan& p, int row, int fragment) {
        return (row * p.depth_fragments + fragment) * p.left_fragment;
    }

    template <auto Product, class Registers, class Left, class Step, class Words>
    FMHA_DEVICE void plain_product(Accumulator<Product, Registers>& acc, Left& left, int first,
                                   const Step& from, Words& right) {
        const ProductPlan& p = block_.template piece<Product>();
        const int pair = p.load_matrix ? 32 / p.depth : 1; // column tiles that one read delivers
        const bool in_registers = left.in_registers(block_);
        auto streamed = block_.template registers<std::uint32_t, Product, &ProductPlan::left_registers>();
        const int own = p.acc.row_tiles * p.left_fragment, together = p.left_registers / own;
        FMHA_UNROLL
        for (int step = 0; step < p.step_fragments; ++step) {
            const int fragment = first / p.depth + step, place = step % together * own;
            if constexpr (Left::template may_stream<Block>())
                if (!in_registers && place == 0) {
                    FMHA_UNROLL
                    for (int i = 0; i < together; ++i) {
                        FMHA_UNROLL
                        for (int row = 0; row < p.acc.row_tiles; ++row)
                            stream_left<Product>(block_, left, row, fragment + i, streamed, 0, i * own);
                    }
                }
            FMHA_UNROLL
            for (int col = 0; col < p.acc.column_tiles; col += pair) {
                read_right<Product>(from, col, step, right);
                FMHA_UNROLL
                for (int half = 0; half < pair; ++half) {
                    FMHA_UNROLL
                    for (int row = 0; row < p.acc.row_tiles; ++row) {
                        const int to = (row * p.acc.column_tiles + col + half) * p.acc.fragment;
                        if constexpr (Left::template may_stay<Block>())
                            if (in_registers)
                                multiply(p, acc.x, to, left.x, fragment_at(p, row, fragment), right,
                                         half * p.right_fragment, p.from_zero && fragment == 0);
                        if constexpr (Left::template may_stream<Block>())
                            if (!in_registers)
                                multiply(p, acc.x, to, streamed, place + row * p.left_fragment, right,
                                         half * p.right_fragment, p.from_zero && fragment == 0);
                    }
                }
            }
        }
    }

    /// The same of a left operand in registers, with right fragments read ahead: a wave that has a SIMD for itself has no other that works
    /// until they arrive. Compilers read them where they are needed, to save registers, hence the order.
    template <auto Product, class Registers, class Left, class Step, class Words>
    FMHA_DEVICE void product_ahead(Accumulator<Product, Registers>& acc, Left& left, int first,
                                   const Step& from, Words& right) {
        const ProductPlan& p = block_.template piece<Product>();
        const int columns = p.acc.column_tiles, fragments = p.step_fragments * columns;
        const auto place = [&](int n) { return n % (p.reads_ahead + 1) * p.right_fragment; };
        FMHA_UNROLL
        for (int n = 0; n < fragments + p.reads_ahead; ++n) {
            if (n < fragments) read_right<Product>(from, n % columns, n / columns, right, place(n));
            const int now = n - p.reads_ahead;
            if (now < 0) continue;
            block_.machine.products_in_order();
            FMHA_UNROLL
            for (int row = 0; row < p.acc.row_tiles; ++row)
                multiply(p, acc.x, (row * columns + now % columns) * p.acc.fragment, left.x,
                         fragment_at(p, row, first / p.depth + now / columns), right, place(now));
            block_.machine.products_in_order();
        }
    }

    /// The products of a step are added up first, then multiplied by `factor`, fragment by fragment.
    template <auto Product, class Registers, class Left, class Step, class Words>
    FMHA_DEVICE void product_with_factor(Accumulator<Product, Registers>& acc, Left& left, int first,
                                         const Step& from, float factor, Words& right) {
        const ProductPlan& p = block_.template piece<Product>();
        auto part =
            block_.template registers<float, Product, &ProductPlan::acc, &AccumulatorPlan::fragment>();
        FMHA_UNROLL
        for (int col = 0; col < p.acc.column_tiles; ++col) {
            FMHA_UNROLL
            for (int row = 0; row < p.acc.row_tiles; ++row) {
                const int to = (row * p.acc.column_tiles + col) * p.acc.fragment;
                block_.machine.each([&](int thread) {
                    FMHA_UNROLL
                    for (int r = 0; r < p.acc.fragment; ++r) part.at(thread, r) = 0.0F;
                });
                FMHA_UNROLL
                for (int step = 0; step < p.step_fragments; ++step) {
                    read_right<Product>(from, col, step, right);
                    multiply(p, part, 0, left.x, fragment_at(p, row, first / p.depth + step), right, 0);
                }
                block_.machine.each([&](int thread) {
                    FMHA_UNROLL
                    for (int r = 0; r < p.acc.fragment; ++r)
                        acc.x.at(thread, to + r) =
                            block_.machine.settled(acc.x.at(thread, to + r) + factor * part.at(thread, r));
                });
            }
        }
    }

    /// The scales of a right fragment, from behind the elements of its lines to behind the fragment's words.
    template <auto Right, class Registers>
    FMHA_DEVICE void read_scales(const ProductPlan& p, int address, int col, int k0, Registers& out, int r0) {
        if (p.scale_block == 0) return;
        const Image& image = block_.template piece<Right>().image;
        block_.machine.each([&](int thread) {
            const int line = col * p.acc.cols + p.right_scale.outer.of_lane(block_.lane(thread));
            const int block = (k0 + p.right_scale.k.of_lane(block_.lane(thread))) / p.scale_block;
            out.at(thread, r0 + p.right_words) = block_.machine.lds_read_byte(
                thread, address + line * image.line_bytes + image.scales() + block);
        });
    }

    /// Four 8 × 8 matrices of 16-bit elements: as many column tiles as they hold of the product's depth. A line of the
    /// image is a column of the product, or, `across`, an element of its depth.
    template <auto Product, class Registers>
    FMHA_DEVICE void load_matrices(int base, const Image& image, int col, int k0, bool across,
                                   Registers& out) {
        // The lane's share of an address is the same in every read, so that one register holds it for all of them.
        const ProductPlan& p = block_.template piece<Product>();
        const int halves = p.depth / 8;
        const int step = across ? k0 * image.line_bytes + col * 16 : col * 8 * image.line_bytes + k0 * 2;
        block_.machine.load_matrix(
            out, 0,
            [&](int thread) {
                const int l = block_.lane(thread), matrix = l / 8;
                const int wave = block_.wave(thread);
                const int column = p.acc.col_of_wave(wave) + matrix / halves * 8,
                          k = matrix % halves * 8 + (p.depth_step == 0 ? 0 : wave * p.depth_step);
                const int of_lane = across ? (k + l % 8) * image.line_bytes + column * 2
                                           : (column + l % 8) * image.line_bytes + k * 2;
                return base + of_lane + step;
            },
            across);
    }
};

} // namespace fmha::hip_target
