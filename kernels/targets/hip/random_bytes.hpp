#pragma once

#include "kernels/programs/philox.hpp"
#include "kernels/targets/hip/tile_memory.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// The random bytes of a score tile, in LDS: a line is a key with its rows.
struct RandomTile {};

/// Where the part of a wave begins in a score tile.
struct BytesOrigin {
    int row = 0, key = 0;
    int line = 0; ///< of the image: that of key 0
};

/// The bytes of `rows` rows and `keys` keys of a wave, from origin(thread) on, so that no other wave has to be waited for.
/// A lane's 16 bytes are two runs of eight rows of one key (D-5).
template <class Block, class Origin>
FMHA_DEVICE void generate_bytes(const Block& block, const Image& image, const kernels::RandomSquares& squares,
                                std::int64_t row0, std::int64_t key0, int rows, int keys, Origin origin) {
    constexpr int half = 16; // rows between the two runs of a lane
    const int wave = block.plan().wave_size;
    const bool whole = rows % kernels::RandomSquares::side == 0;
    const int group_rows = whole ? kernels::RandomSquares::side : half;
    const int tasks = rows / group_rows * 2 * keys;
    block.machine.wave_barrier(); // the last tile's bytes have been used
    block.machine.each([&](int thread) {
        const BytesOrigin first = origin(thread);
        FMHA_NO_UNROLL
        for (int task = block.lane(thread); task < tasks; task += wave) {
            const int key = first.key + task % keys, upper = task / keys % 2, group = task / keys / 2;
            const int row = first.row + group * group_rows;
            const std::int64_t global = row0 + row;
            const kernels::PhiloxWords words = squares.lane_bytes(
                global / 32, (key0 + key) / 32, 32 * upper + static_cast<int>((key0 + key) % 32));
            const int to = image.offset + (first.line + key) * image.line_bytes + row + 8 * upper;
            const bool second = !whole && global % 32 == half;
            const std::uint32_t low[2] = {second ? words.word[2] : words.word[0],
                                          second ? words.word[3] : words.word[1]};
            block.machine.template lds_write<2>(thread, to, low);
            if (whole) block.machine.template lds_write<2>(thread, to + half, words.word + 2);
        }
    });
    block.machine.wave_barrier();
}

/// Dropout. `Scores` of the plan is the tile that the bytes belong to, `Bytes` their image.
template <class Block, auto Scores, auto Bytes>
class RandomBytes {
  public:
    FMHA_DEVICE explicit RandomBytes(const Block& block) : block_(block) {}

    FMHA_DEVICE RandomTile random_bytes() const { return {}; }

    /// The bytes of a wave's own rows.
    FMHA_DEVICE void generate(const RandomTile&, const kernels::RandomSquares& squares, std::int64_t row0,
                              std::int64_t key0) {
        generate_bytes(block_, image(), squares, row0, key0, wave_rows(), image().lines, [&](int thread) {
            return BytesOrigin{block_.wave(thread) * wave_rows(), 0, 0};
        });
    }
    template <class Tile>
    FMHA_DEVICE void drop(Tile& scores, const RandomTile&, std::uint8_t threshold) {
        each_byte([&](int thread, int at, int, int, std::uint32_t byte) {
            if (byte > threshold) scores.x.at(thread, at) = 0.0F;
        });
    }
    FMHA_DEVICE void store(const kernels::Matrix& matrix, const RandomTile&, std::int64_t row0,
                           std::int64_t key0) {
        const LineView to = LineView::of(matrix, ElementType::uint8);
        each_byte([&](int, int, int row, int col, std::uint32_t byte) {
            if (row0 + row < matrix.rows.written && key0 + col < matrix.cols.written)
                *const_cast<char*>(
                    to.at(row0 + row, key0 + col)) = // NOLINT(*-const-cast): a view of an output
                    static_cast<char>(byte);
        });
    }

  private:
    Block block_;

    FMHA_DEVICE int wave_rows() const { return layout_of<Scores>(block_).wave_rows; }
    FMHA_DEVICE const Image& image() const { return block_.template piece<Bytes>(); }

    /// f(thread, register, row, key, byte) for every element of the score tile.
    template <class F>
    FMHA_DEVICE void each_byte(F f) {
        const AccumulatorPlan& acc = layout_of<Scores>(block_);
        block_.machine.each([&](int thread) {
            const int here = block_.machine.local_thread(thread);
            const int row0 = block_.wave(here) * wave_rows() + acc.row.of_lane(block_.lane(here));
            const int col0 = acc.col.of_lane(block_.lane(here));
            each_place<Scores>(block_, [&](int at, int, int row, int col) {
                if (at % reads_under_way == 0) block_.machine.in_order();
                const int from = image().offset + (col0 + col) * image().line_bytes + row0 + row;
                f(thread, at, row0 + row, col0 + col, block_.machine.lds_read_byte(thread, from));
            });
        });
    }
};

} // namespace fmha::hip_target
