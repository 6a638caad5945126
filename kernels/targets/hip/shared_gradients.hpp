#pragma once

#include "kernels/targets/hip/backward_plan.hpp"
#include "kernels/targets/hip/products.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// dS of a tile in LDS, where all waves of a block write their parts, and read it as the left operand of dQ.
template <class Block>
class SharedGradients {
    using Machine = typename Block::Machine;
    using Plan = BackwardPlan;

  public:
    FMHA_DEVICE explicit SharedGradients(const Block& block) : block_(block) {}

    /// dS, rounded, from the accumulators `ds`. Where there are two stages, it goes to the one that the tile before has not.
    template <class Tile>
    FMHA_DEVICE void write(Tile& ds) {
        stage_ = plan().gradient_stage - stage_;
        if (plan().gradient_lines == GradientLines::queries_paired)
            write_paired(ds);
        else
            write_by_thread(ds);
    }
    /// Left fragment `fragment` of row tile `row` of dS, to registers behind those of such row tiles from `r0` on.
    template <auto Product, class Registers>
    FMHA_DEVICE void read(int row, int fragment, Registers& out, int r0) {
        if constexpr (Machine::has_load_matrix)
            if (plan().gradient_lines == GradientLines::keys) {
                const ProductPlan& p = block_.template piece<Product>();
                const Image& image = plan().gradients.image;
                block_.machine.load_matrix(
                    out, r0 + row * p.left_fragment,
                    [&](int thread) {
                        const int l = block_.lane(thread);
                        const int key = fragment * 16 + l / 16 * 8 + l % 8;
                        const int query =
                            p.acc.row_of_wave(block_.wave(thread)) + row * p.acc.rows + l / 8 % 2 * 8;
                        return image.offset + stage_ + image.at(key, query * 2);
                    },
                    true);
                return;
            }
        const auto from = left_operand<&Plan::gradients>(block_);
        stream_left<Product>(block_, from, row, fragment, out, stage_, r0);
    }

  private:
    Block block_;
    int stage_ = 0; ///< where dS of the present tile is, in bytes

    FMHA_DEVICE decltype(auto) plan() const { return block_.plan(); }

    /// A thread's part of one line at a time.
    template <class Tile>
    FMHA_DEVICE void write_by_thread(Tile& ds) {
        const AccumulatorPlan& acc = layout_of<Tile::piece>(block_);
        const Image& image = plan().gradients.image;
        const ElementType type = plan().gradients.type;
        const int per_word = 32 / element_bits(type);
        const bool by_key = plan().gradient_lines == GradientLines::keys;
        block_.machine.each([&](int thread) {
            if (acc.copy_of_wave(block_.wave(thread)) != 0) return;
            const int key0 = acc.row_of_wave(block_.wave(thread)) + acc.row.of_lane(block_.lane(thread));
            const int query0 = acc.col.of_lane(block_.lane(thread));
            each_place<Tile::piece>(
                block_,
                [&](int at, int, int row, int col) {
                    float x[2] = {};
                    FMHA_UNROLL
                    for (int i = 0; i < per_word; ++i) x[i] = ds.x.at(thread, at + i);
                    const std::uint32_t word = block_.machine.pack(x, type);
                    const int key = key0 + row, query = query0 + col;
                    const int to = by_key ? image.at(key, query * 4 / per_word) : image.at(query, key * 4);
                    block_.machine.template lds_write<1>(thread, image.offset + stage_ + to, &word);
                },
                per_word);
        });
    }

    /// 16-bit elements to lines of queries, where neighbouring lanes have neighbouring keys: one of the two
    /// writes the words of a pair of queries that belong to the first, the other those that belong to the second.
    template <class Tile>
    FMHA_DEVICE void write_paired(Tile& ds) {
        const AccumulatorPlan& acc = layout_of<Tile::piece>(block_);
        const Image& image = plan().gradients.image;
        auto own = block_.template registers<std::uint32_t, &Plan::score_words>();
        auto other = block_.template registers<std::uint32_t, &Plan::score_words>();
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int at = 0; at < acc.registers; at += 2) {
                const float x[2] = {ds.x.at(thread, at), ds.x.at(thread, at + 1)};
                own.at(thread, at / 2) = block_.machine.pack_results(x, plan().gradients.type);
            }
        });
        block_.machine.exchange(other, own, 1);
        block_.machine.each([&](int thread) {
            if (acc.copy_of_wave(block_.wave(thread)) != 0) return;
            const int lane = block_.lane(thread);
            const bool second = (lane & 1) != 0;
            // Lower halves of both words, the lower lane's first; or upper ones.
            const std::uint32_t selector = second ? 0x03020706U : 0x05040100U;
            const int key0 = acc.row_of_wave(block_.wave(thread)) + acc.row.of_lane(lane & ~1);
            const int query0 = acc.col.of_lane(lane);
            each_place<Tile::piece>(
                block_,
                [&](int at, int, int row, int col) {
                    const int next =
                        acc.col_of_register[(at + 1) % acc.fragment] - acc.col_of_register[at % acc.fragment];
                    const std::uint32_t word = block_.machine.select_bytes(other.at(thread, at / 2),
                                                                           own.at(thread, at / 2), selector);
                    const int query = query0 + col + (second ? next : 0);
                    block_.machine.template lds_write<1>(
                        thread, image.offset + stage_ + image.at(query, (key0 + row) * 2), &word);
                },
                2);
        });
    }
};

} // namespace fmha::hip_target
