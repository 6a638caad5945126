#pragma once

#include "kernels/targets/hip/products.hpp"

#include <bit>
#include <cstdint>

namespace fmha::hip_target {

/// From the accumulators of one product to the left operand of another. `Piece` of the plan is the WeightPlan, `Product`
/// the second of the two.
template <class Block, auto Piece, auto Product>
class Weights {
  public:
    FMHA_DEVICE explicit Weights(const Block& block) : block_(block) {}

    /// `carried`: the scores have the weights' factor already.
    template <class Tile>
    FMHA_DEVICE auto narrow(Tile& scores, bool carried = false) {
        const ProductPlan& p = consumer();
        auto weights = block_.template registers<std::uint32_t, Piece, &WeightPlan::words>();
        const int own = p.left_elements / p.copies; // of a fragment, before lanes exchange theirs
        auto powers = block_.template registers<float, Piece, &WeightPlan::block_maxima>();
        if (p.scale_block != 0) scale_weights(scores, weights, powers);
        const float factor = carried ? 1.0F : weight_scale();
        const int fragments = p.depth_fragments, per_word = 32 / element_bits(plan().type);
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int row = 0; row < layout_of<Tile::piece>(block_).row_tiles; ++row) {
                FMHA_UNROLL
                for (int fragment = 0; fragment < fragments; ++fragment) {
                    const int from = row * layout_of<Tile::piece>(block_).column_tiles *
                                         layout_of<Tile::piece>(block_).fragment +
                                     fragment * own;
                    const int to = (row * fragments + fragment) * p.left_fragment;
                    FMHA_UNROLL
                    for (int e = 0; e < own; e += per_word) {
                        float x[8];
                        FMHA_UNROLL
                        for (int i = 0; i < per_word; ++i) {
                            x[i] = scores.x.at(thread, from + plan().source[e + i]);
                            if constexpr (!divides) x[i] *= factor;
                        }
                        float divisor = 1.0F / factor;
                        if constexpr (divides) // the keys of a word share a block
                            if (plan().has_own_scales())
                                divisor = powers.at(thread, block_of<Tile>(from + plan().source[e]));
                        weights.at(thread, to + e / per_word) =
                            element_bits(plan().type) == 32
                                ? block_.machine.round_operand(std::bit_cast<std::uint32_t>(x[0]))
                                : packed(x, divisor);
                    }
                }
            }
        });
        if (p.copies == 2) share_halves(weights);
        FMHA_UNROLL
        for (int i = 0; i < plan().swap_count; ++i) swap_blocks(weights, plan().swaps[i]);
        return WeightTile<decltype(weights)>{weights};
    }
    FMHA_DEVICE float narrowed(float weight) const {
        const float x[4] = {weight, weight, weight, weight};
        const std::uint32_t word = block_.machine.pack_results(x, plan().type);
        return block_.machine.unpack(word & (0xFFFFFFFFU >> (32 - element_bits(plan().type))), plan().type);
    }
    FMHA_DEVICE float weight_unit() const { return 1.0F / weight_scale(); }
    FMHA_DEVICE float weight_shift() const {
        return plan().type == ElementType::fp8_ocp    ? 8.0F
               : plan().type == ElementType::fp8_fnuz ? 7.0F
                                                      : 0.0F;
    }
    FMHA_DEVICE float slack() const { return plan().slack; }

  private:
    Block block_;

    FMHA_DEVICE const WeightPlan& plan() const { return block_.template piece<Piece>(); }
    FMHA_DEVICE const ProductPlan& consumer() const { return block_.template piece<Product>(); }

    /// e4m3 has too few binades for weights in [0, 1]; moving them up costs nothing (T-6).
    FMHA_DEVICE float weight_scale() const {
        return static_cast<float>(1U << static_cast<unsigned>(weight_shift()));
    }

    static constexpr bool divides = Block::Machine::packs_quotients;
    FMHA_DEVICE std::uint32_t packed(const float* x, float divisor) const {
        if constexpr (divides)
            return block_.machine.pack_quotients(x, plan().type, divisor);
        else
            return block_.machine.pack_results(x, plan().type);
    }

    /// RDNA 3: a half-wave holds the weights of half of a fragment's keys, four words a lane, and an operand needs all of them in
    /// both halves: those of the lower one first.
    static constexpr int other_half = 16, own_words = 4;

    template <class Registers>
    FMHA_DEVICE void share_halves(Registers& weights) {
        if (plan().shared_at >= 0)
            share_in_memory(weights);
        else
            share_by_exchange(weights);
    }

    /// No vector instruction: the loop over keys has most of those. A wave's accesses stay in their order.
    template <class Registers>
    FMHA_DEVICE void share_in_memory(Registers& weights) {
        FMHA_UNROLL
        for (int first = 0; first < plan().words; first += 2 * own_words) {
            block_.machine.each([&](int thread) {
                std::uint32_t words[own_words];
                FMHA_UNROLL
                for (int w = 0; w < own_words; ++w) words[w] = weights.at(thread, first + w);
                block_.machine.template lds_write<own_words>(thread, shared_words(thread), words);
            });
            block_.machine.wave_barrier();
            block_.machine.each([&](int thread) {
                FMHA_UNROLL
                for (int half = 0; half < 2; ++half) {
                    std::uint32_t words[own_words];
                    block_.machine.template lds_read<own_words>(
                        thread, shared_words((thread & ~other_half) + half * other_half), words);
                    FMHA_UNROLL
                    for (int w = 0; w < own_words; ++w)
                        weights.at(thread, first + half * own_words + w) = words[w];
                }
            });
            block_.machine.wave_barrier();
        }
    }
    FMHA_DEVICE int shared_words(int thread) const {
        return plan().shared_at + thread * WeightPlan::shared_bytes;
    }

    template <class Registers>
    FMHA_DEVICE void share_by_exchange(Registers& weights) {
        auto others = block_.template registers<std::uint32_t, Piece, &WeightPlan::words>();
        block_.machine.exchange(others, weights, other_half);
        block_.machine.each([&](int thread) {
            const bool upper = (block_.lane(thread) & other_half) != 0;
            FMHA_UNROLL
            for (int first = 0; first < plan().words; first += 2 * own_words) {
                FMHA_UNROLL
                for (int w = first; w < first + own_words; ++w) {
                    const std::uint32_t mine = weights.at(thread, w), theirs = others.at(thread, w);
                    weights.at(thread, w) = upper ? theirs : mine;
                    weights.at(thread, w + own_words) = upper ? mine : theirs;
                }
            }
        });
    }

    /// The number of the block of keys that a register of the scores belongs to, of all blocks that a lane has weights of.
    template <class Tile>
    FMHA_DEVICE int block_of(int at) const {
        const AccumulatorPlan& acc = layout_of<Tile::piece>(block_);
        const ProductPlan& second = consumer();
        const int blocks = second.depth_fragments * (second.depth / second.scale_block);
        const int tile = at / acc.fragment % acc.column_tiles, row = at / acc.fragment / acc.column_tiles;
        const int key = tile * acc.cols + acc.col_of_register[at % acc.fragment];
        return (row * acc.row_slots + acc.slot_of_register[at % acc.fragment]) * blocks +
               key / second.scale_block;
    }

    /// Weights of 4 bits share a power of two in every block of keys, so that the largest of a row comes close to the
    /// type's; those of 8 bits need none. The power that a lane's block has goes behind each fragment, those of all blocks to `powers`.
    template <class Tile, class Registers, class Powers>
    FMHA_DEVICE void scale_weights(const Tile& scores, Registers& weights, Powers& powers) {
        const ProductPlan& second = consumer();
        const int block = second.scale_block, blocks = second.depth_fragments * (second.depth / block);
        const int of_fragment = second.depth / block, fragments = blocks / of_fragment;
        const bool shared = plan().has_own_scales();
        if (shared) {
            block_.machine.each([&](int thread) {
                FMHA_UNROLL
                for (int i = 0; i < plan().block_maxima; ++i) powers.at(thread, i) = 0.0F;
                FMHA_UNROLL
                for (int at = 0; at < layout_of<Tile::piece>(block_).registers; ++at) {
                    float& largest = powers.at(thread, block_of<Tile>(at));
                    largest = __builtin_fmaxf(largest, scores.x.at(thread, at));
                }
            });
            FMHA_UNROLL
            for (int bit = 1; bit < 64; bit *= 2)
                if ((layout_of<Tile::piece>(block_).sharing_lanes & bit) != 0)
                    block_.machine.fold(powers, bit,
                                        [this](float a, float b) { return block_.machine.larger(a, b); });
        }
        block_.machine.each([&](int thread) {
            if (shared) {
                FMHA_UNROLL
                for (int i = 0; i < plan().block_maxima; ++i)
                    powers.at(thread, i) = fp4_power(powers.at(thread, i));
            }
            const int own = second.left_scale.k.of_lane(block_.lane(thread)) / block;
            FMHA_UNROLL
            for (int i = 0; i < layout_of<Tile::piece>(block_).row_tiles * fragments; ++i) {
                float power = 0.0F;
                FMHA_UNROLL
                for (int b = 0; b < of_fragment; ++b) {
                    const float candidate =
                        powers.at(thread, i / fragments * blocks + i % fragments * of_fragment + b);
                    power = b == own ? candidate : power;
                }
                constexpr std::uint32_t one = 127;
                weights.at(thread, i * second.left_fragment + second.left_words) =
                    shared ? std::bit_cast<std::uint32_t>(power) >> 23U : one;
            }
        });
    }
    /// The smallest power of two, 2^e, with largest ≤ 6 · 2^e, or the smallest normal number.
    FMHA_DEVICE static float fp4_power(float largest) {
        // 6 is 1.5 · 2^2: half of the mantissas reach the next binade.
        constexpr std::uint32_t binade = 1U << 23U;
        const std::uint32_t reached = (std::bit_cast<std::uint32_t>(largest) + 0x3FFFFFU) & ~(binade - 1U);
        const std::uint32_t least = 3U * binade;
        return std::bit_cast<float>((reached > least ? reached : least) - 2U * binade);
    }

    /// Lanes that differ in `swap.lane_bit` trade the words that differ in the element bit: afterwards both bits have
    /// changed places.
    template <class Registers>
    FMHA_DEVICE void swap_blocks(Registers& weights, const LaneSwap& swap) {
        const ProductPlan& p = consumer();
        const int bit = (1 << swap.element_bit) * element_bits(plan().type) / 32;
        constexpr bool trades = requires {
            block_.machine.trade(weights, 0, 0, 0);
        };
        if constexpr (trades) { // others have no scaled operands
            FMHA_UNROLL
            for (int fragment = 0; fragment < plan().words; fragment += p.left_fragment) {
                FMHA_UNROLL
                for (int w = 0; w < p.left_words; ++w)
                    if ((w & bit) == 0)
                        block_.machine.trade(weights, fragment + w, fragment + w + bit, 1 << swap.lane_bit);
            }
        }
    }
};

} // namespace fmha::hip_target
