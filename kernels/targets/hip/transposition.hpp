#pragma once

#include "kernels/targets/hip/block.hpp"
#include "kernels/targets/hip/ws_plan.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Transposes tiles of bytes in LDS, both of lines as a SwizzledTile has them: lines of channels become lines of keys. NVIDIA's matrix reads
/// transpose pairs of bytes, so a lane has two neighbouring channels of four keys in two words, of which it makes a word of each channel.
///
/// Lanes read and write lines of 16 bytes, eight at once, which should lie in all banks: their numbers have to differ modulo 8. So a matrix
/// of keys has pairs 0, 2, 5 and 7 of 16 keys, another one the rest, and a matrix of channels the even ones of the first eight
/// and the odd ones of the second, or the other way round. What lies where is a lane's own selector of bytes.
template <class Block>
class Transposition {
  public:
    FMHA_DEVICE explicit Transposition(const Block& block) : block_(block) {}

    /// All waves that transpose, each its part of the keys, from the tile at `source` to that at `target`. Tiles begin at multiples of 1024
    /// bytes, so that a lane's place in both differs from step to step by a sum and an XOR alone.
    FMHA_DEVICE void transpose(const StreamPlan& from, int source, int target) const {
        auto words = block_.template registers<std::uint32_t, most_reads * words_of_read>();
        const int of_step = keys * block_.plan().transposers;
        FMHA_NO_UNROLL
        for (int step = 0; step < from.lines; step += of_step) {
            const int reads = from.elements / channels;
            FMHA_UNROLL
            for (int n = 0; n < reads; ++n)
                block_.machine.load_matrix(
                    words, words_of_read * n,
                    [&](int thread) {
                        return source + step * SwizzledTile::line_bytes + (read_place(thread) ^ channels * n);
                    },
                    true);
            block_.machine.each([&](int thread) {
                FMHA_UNROLL
                for (int w = 0; w < words_of_read * reads; w += 2) part_channels(words, thread, w);
            });
            FMHA_UNROLL
            for (int n = 0; n < reads; ++n)
                block_.machine.store_matrix(words, words_of_read * n, [&](int thread) {
                    return target + channels * n * SwizzledTile::line_bytes + (write_place(thread) ^ step);
                });
        }
    }

  private:
    static constexpr int side = 8, keys = 16, channels = 32, words_of_read = 4;
    static constexpr int most_reads = SwizzledTile::line_bytes / channels;

    Block block_;

    /// The first key of the wave in the first step.
    FMHA_DEVICE int first_key(int thread) const {
        return keys * block_.machine.transposer(thread, block_.plan().feeders);
    }
    /// Where the lane's line of the first read lies in a tile: matrices 0 and 1 have keys of 16 channels, 2 and 3 those of 16 more.
    FMHA_DEVICE int read_place(int thread) const {
        const int lane = block_.lane(thread), matrix = lane / side, row = lane % side, pair = row / 2;
        const bool later = (pair >= 2) != (matrix % 2 != 0);
        const int key = first_key(thread) + 4 * pair + row % 2 + (later ? 2 : 0);
        return SwizzledTile::swizzled(key * SwizzledTile::line_bytes + channels / 2 * (matrix / 2));
    }
    /// The same of the first write.
    FMHA_DEVICE int write_place(int thread) const {
        const int lane = block_.lane(thread), matrix = lane / side, row = lane % side;
        const bool odd = (row >= side / 2) != (matrix % 2 != 0);
        const int channel = channels / 2 * (matrix / 2) + 2 * row + (odd ? 1 : 0);
        return SwizzledTile::swizzled(channel * SwizzledTile::line_bytes + first_key(thread));
    }
    /// Words w and w + 1: two channels of four keys, of which either has two, become four keys of one channel each.
    template <class Words>
    FMHA_DEVICE void part_channels(Words& words, int thread, int w) const {
        constexpr std::uint32_t first_word_first = 0x06040200, second_word_first = 0x02000604,
                                next_channel = 0x01010101;
        const int lane = block_.lane(thread), pair = lane % 4, row = lane / 4;
        const std::uint32_t even = pair < 2 ? first_word_first : second_word_first,
                            first = row < side / 2 ? even : even + next_channel;
        const std::uint32_t low = words.at(thread, w), high = words.at(thread, w + 1);
        words.at(thread, w) = block_.machine.select_bytes(high, low, first);
        words.at(thread, w + 1) = block_.machine.select_bytes(high, low, first ^ next_channel);
    }
};

} // namespace fmha::hip_target
