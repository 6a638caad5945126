#pragma once

#include "kernels/targets/hip/fragments.hpp"

#include <bit>
#include <cstdint>

namespace fmha::hip_target {

/// From the accumulators of the first product to operands of the second.
template <class Machine, class Setup>
class Weights : public Products<Machine, Setup> {
  protected:
    using Base = Products<Machine, Setup>;
    using Base::lane;
    using Base::machine_;

  public:
    using Base::Base;
    using Base::cfg;
    using Base::plan;

    template <class Tile>
    FMHA_DEVICE auto narrow(Tile& scores) {
        const ProductPlan& p = plan().second;
        auto weights = this->template registers<std::uint32_t, &BlockPlan::weight_words>();
        const int own = p.left_elements / p.copies; // of a fragment, before lanes exchange theirs
        if (p.scale_block != 0) scale_weights(scores, weights);
        const int fragments = cfg().algorithm.tile.n0 / p.depth, per_word = 32 / element_bits(plan().type_p);
        machine_.each([&](int thread) {
            FMHA_UNROLL
            for (int row = 0; row < plan().row_tiles; ++row) {
                FMHA_UNROLL
                for (int fragment = 0; fragment < fragments; ++fragment) {
                    const int from = row * plan().key_tiles * plan().first.acc_registers + fragment * own;
                    const int to = (row * fragments + fragment) * p.left_fragment;
                    FMHA_UNROLL
                    for (int e = 0; e < own; e += per_word) {
                        float x[8];
                        FMHA_UNROLL
                        for (int i = 0; i < per_word; ++i)
                            x[i] = scores.x.at(thread, from + plan().weight_source[e + i]) * weight_scale();
                        weights.at(thread, to + e / per_word) =
                            element_bits(plan().type_p) == 32
                                ? machine_.round_operand(std::bit_cast<std::uint32_t>(x[0]))
                                : machine_.pack(x, plan().type_p);
                    }
                }
            }
        });
        if (p.copies == 2) share_halves(weights);
        FMHA_UNROLL
        for (int i = 0; i < plan().weight_swap_count; ++i) swap_blocks(weights, plan().weight_swaps[i]);
        return WeightTile<decltype(weights)>{weights};
    }
    FMHA_DEVICE float weight_unit() const { return 1.0F / weight_scale(); }

  protected:
    FMHA_DEVICE static float maximum(float a, float b) { return __builtin_fmaxf(a, b); }

    /// Lane bits in which the lanes that share a row differ.
    FMHA_DEVICE int sharing_lanes() const {
        int mask = 0;
        for (int bit = 0; (1 << bit) < plan().wave_size; ++bit)
            if (plan().first.acc_row.lane[bit] == 0) mask |= 1 << bit;
        return mask;
    }
    /// f(register, row slot, row, column) for every accumulator of a thread, or for the first of every `run` of them;
    /// row and column without the lane's part.
    template <class Tile, class F>
    FMHA_DEVICE void each_place(const Tile& tile, F f, int run = 1) const {
        const ProductPlan& p = tile.product(plan());
        const int columns = tile.column_tiles(plan());
        FMHA_UNROLL
        for (int row = 0; row < plan().row_tiles; ++row) {
            FMHA_UNROLL
            for (int col = 0; col < columns; ++col) {
                FMHA_UNROLL
                for (int r = 0; r < p.acc_registers; r += run)
                    f((row * columns + col) * p.acc_registers + r,
                      row * plan().row_slots + plan().slot_of_register[r],
                      row * p.rows + p.row_of_register[r], col * p.cols + p.col_of_register[r]);
            }
        }
    }

  private:
    /// e4m3 has too few binades for weights in [0, 1]; moving them up costs nothing (T-6).
    FMHA_DEVICE float weight_scale() const {
        return plan().type_p == ElementType::fp8_ocp    ? 256.0F
               : plan().type_p == ElementType::fp8_fnuz ? 128.0F
                                                        : 1.0F;
    }

    /// RDNA 3: the half-waves hold even and odd keys; an operand needs all of them, in pairs of neighbours, in both.
    template <class Registers>
    FMHA_DEVICE void share_halves(Registers& weights) {
        constexpr int other_half = 16;
        const ProductPlan& p = plan().second;
        const int fragments = plan().weight_words / p.left_words, own = p.left_words / 2;
        auto others = this->template registers<std::uint32_t, &BlockPlan::weight_words>();
        machine_.exchange(others, weights, other_half);
        machine_.each([&](int thread) {
            // Lower halves of a pair of words, this lane's first or second; then the upper ones.
            const bool upper = (lane(thread) & other_half) != 0;
            const std::uint32_t low = upper ? 0x01000504U : 0x05040100U;
            FMHA_UNROLL
            for (int fragment = 0; fragment < fragments; ++fragment) {
                const int at = fragment * p.left_words;
                FMHA_UNROLL
                for (int w = own - 1; w >= 0; --w) {
                    const std::uint32_t mine = weights.at(thread, at + w), theirs = others.at(thread, at + w);
                    weights.at(thread, at + 2 * w + 1) =
                        machine_.select_bytes(theirs, mine, low + 0x02020202U);
                    weights.at(thread, at + 2 * w) = machine_.select_bytes(theirs, mine, low);
                }
            }
        });
    }

    /// Weights of 4 bits share a power of two in every block of keys, so that the largest of a row comes close to the
    /// type's; those of 8 bits need none. The power that a lane's block has goes behind each fragment.
    template <class Tile, class Registers>
    FMHA_DEVICE void scale_weights(Tile& scores, Registers& weights) {
        const ProductPlan& second = plan().second;
        const int block = second.scale_block, blocks = cfg().algorithm.tile.n0 / block;
        const int of_fragment = second.depth / block, fragments = blocks / of_fragment;
        const bool shared = plan().type_p == ElementType::fp4;
        auto largest = this->template registers<float, &BlockPlan::block_maxima>();
        const auto each_weight = [&](auto f) { // f(register, register of its block's maximum)
            each_place(scores, [&](int at, int slot, int, int col) { f(at, slot * blocks + col / block); });
        };
        if (shared) {
            machine_.each([&](int thread) {
                FMHA_UNROLL
                for (int i = 0; i < plan().block_maxima; ++i) largest.at(thread, i) = 0.0F;
                each_weight([&](int at, int of_block) {
                    largest.at(thread, of_block) =
                        maximum(largest.at(thread, of_block), scores.x.at(thread, at));
                });
            });
            FMHA_UNROLL
            for (int bit = 1; bit < 64; bit *= 2) {
                if ((sharing_lanes() & bit) == 0) continue;
                auto other = this->template registers<float, &BlockPlan::block_maxima>();
                machine_.exchange(other, largest, bit);
                machine_.each([&](int thread) {
                    FMHA_UNROLL
                    for (int i = 0; i < plan().block_maxima; ++i)
                        largest.at(thread, i) = maximum(largest.at(thread, i), other.at(thread, i));
                });
            }
        }
        machine_.each([&](int thread) {
            if (shared)
                each_weight([&](int at, int of_block) {
                    scores.x.at(thread, at) *= std::bit_cast<float>(
                        (254U - fp4_scale(largest.at(thread, of_block))) << 23U); // 1 / the power
                });
            const int own = second.left_scale.k.of_lane(lane(thread)) / block;
            FMHA_UNROLL
            for (int i = 0; i < plan().row_tiles * fragments; ++i) {
                float weight = 0.0F;
                FMHA_UNROLL
                for (int b = 0; b < of_fragment; ++b) {
                    const float candidate =
                        largest.at(thread, i / fragments * blocks + i % fragments * of_fragment + b);
                    weight = b == own ? candidate : weight;
                }
                constexpr std::uint32_t one = 127;
                weights.at(thread, i * second.left_fragment + second.left_words) =
                    shared ? fp4_scale(weight) : one;
            }
        });
    }
    /// The code of the smallest power of two, 2^e, with largest ≤ 6 · 2^e.
    FMHA_DEVICE static std::uint32_t fp4_scale(float largest) {
        // 6 is 1.5 · 2^2: half of the mantissas reach the next binade.
        const std::uint32_t binade = (std::bit_cast<std::uint32_t>(largest) + 0x3FFFFFU) >> 23U;
        return binade > 3U ? binade - 2U : 1U;
    }

    /// Lanes that differ in `swap.lane_bit` trade the words that differ in the element bit: afterwards both bits have
    /// changed places.
    template <class Registers>
    FMHA_DEVICE void swap_blocks(Registers& weights, const LaneSwap& swap) {
        const ProductPlan& p = plan().second;
        const int bit = (1 << swap.element_bit) * element_bits(plan().type_p) / 32;
        auto others = this->template registers<std::uint32_t, &BlockPlan::weight_words>();
        machine_.exchange(others, weights, 1 << swap.lane_bit);
        machine_.each([&](int thread) {
            const bool upper = (lane(thread) >> swap.lane_bit & 1) != 0;
            FMHA_UNROLL
            for (int fragment = 0; fragment < plan().weight_words; fragment += p.left_fragment) {
                FMHA_UNROLL
                for (int w = 0; w < p.left_words; ++w) {
                    if ((w & bit) != 0) continue;
                    const int low = fragment + w, high = low + bit;
                    const std::uint32_t mine_low = weights.at(thread, low),
                                        mine_high = weights.at(thread, high);
                    const std::uint32_t their_low = others.at(thread, low),
                                        their_high = others.at(thread, high);
                    weights.at(thread, low) = upper ? their_high : mine_low;
                    weights.at(thread, high) = upper ? mine_high : their_low;
                }
            }
        });
    }
};

} // namespace fmha::hip_target
