#pragma once

#include "kernels/targets/hip/backward_tiles.hpp"
#include "kernels/targets/hip/random_bytes.hpp"
#include "kernels/targets/hip/score_words.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Where the random bytes of a score tile are: in LDS, where they are stored, or in registers, which the context has.
struct BackwardBytes {
    TileView stored;
    bool from_memory = false;
};

/// Dropout in backward: a wave's own keys, and all queries of the tile.
template <class Block>
class BackwardDropout {
    using Machine = typename Block::Machine;

  public:
    FMHA_DEVICE explicit BackwardDropout(const Block& block) : block_(block), ahead_(block), bytes_(block) {}

    FMHA_DEVICE BackwardBytes random_bytes() const { return {}; }

    FMHA_DEVICE void look_at_bytes(const kernels::Matrix& matrix, bool ahead) {
        in_words_ = ahead && ahead_.moves(LineView::of(matrix, ElementType::uint8));
    }
    FMHA_DEVICE void prefetch_bytes(const kernels::Matrix& matrix, std::int64_t row0, std::int64_t key0) {
        ahead_.read_if(in_words_,
                       LineView::of(matrix, ElementType::uint8).near_window(row0, key0, tile_rows()));
    }
    FMHA_DEVICE void load(BackwardBytes& bytes, const kernels::Matrix& matrix, std::int64_t row0,
                          std::int64_t key0) {
        const LineView lines = LineView::of(matrix, ElementType::uint8);
        if constexpr (Machine::ends_buffers)
            if (in_registers()) {
                const bool ahead = block_.plan().staging.read_ahead;
                if (!(ahead ? in_words_ : ahead_.moves(lines)))
                    return bytes_.gather(lines.window(row0, key0, tile_rows()));
                if (!ahead) ahead_.read(lines.near_window(row0, key0, tile_rows()));
                bytes_.copy(ahead_);
                bytes_.turn();
                return;
            }
        bytes.stored = lines.window(row0, key0, tile_rows());
        bytes.from_memory = true;
    }
    FMHA_DEVICE void generate(BackwardBytes& bytes, const kernels::RandomSquares& squares, std::int64_t row0,
                              std::int64_t key0) {
        bytes.from_memory = false;
        const AccumulatorPlan& acc = layout_of<&BackwardPlan::scores>(block_);
        generate_bytes(
            block_, block_.plan().random, squares, row0, key0, tile_rows(), acc.wave_rows, [&](int thread) {
                const int wave = block_.wave(thread);
                return BytesOrigin{0, acc.row_of_wave(wave), acc.copy_of_wave(wave) * acc.block_rows};
            });
        if constexpr (Machine::ends_buffers)
            if (in_registers()) read_generated();
    }
    template <class Tile>
    FMHA_DEVICE void drop(Tile& tile, const BackwardBytes& bytes, std::uint8_t threshold) {
        if constexpr (Machine::ends_buffers)
            if (in_registers()) {
                each_score(block_, tile, [&](int thread, int at, int, int) {
                    if (bytes_.element(thread, at) > threshold) tile.x.at(thread, at) = 0.0F;
                });
                return;
            }
        each_score(block_, tile, [&](int thread, int at, int query, int key) {
            if (at % reads_under_way == 0) block_.machine.in_order();
            std::uint32_t byte = 0;
            if (!bytes.from_memory)
                byte = block_.machine.lds_read_byte(thread, generated_at(thread, query, key));
            else if (query < bytes.stored.lines && key < bytes.stored.elements)
                byte = element_bits_at(bytes.stored.at(query, key), ElementType::uint8);
            if (byte > threshold) tile.x.at(thread, at) = 0.0F;
        });
    }

  private:
    using Words = ScoreWords<Block, &BackwardPlan::score_byte_words, 4>;

    Block block_;
    Words ahead_, bytes_; ///< stored bytes of the next tile, and those of the present one
    bool in_words_ = false;

    FMHA_DEVICE bool in_registers() const { return moves_words(block_.plan(), ElementType::uint8); }
    FMHA_DEVICE int tile_rows() const { return block_.plan().rows.block_rows; }
    FMHA_DEVICE int generated_at(int thread, int query, int key) const {
        const Image& image = block_.plan().random;
        const AccumulatorPlan& acc = layout_of<&BackwardPlan::scores>(block_);
        const int line = acc.copy_of_wave(block_.wave(thread)) * acc.block_rows + key;
        return image.offset + line * image.line_bytes + query;
    }
    /// To registers, where queries of four registers follow one another word by word.
    FMHA_DEVICE void read_generated() {
        const AccumulatorPlan& acc = layout_of<&BackwardPlan::scores>(block_);
        const bool in_words = acc.col_of_register[1] == 1 && acc.col_of_register[2] == 2;
        block_.machine.each([&](int thread) {
            const int key0 = acc.row_of_wave(block_.wave(thread)) + acc.row.of_lane(block_.lane(thread));
            const int query0 = acc.col.of_lane(block_.lane(thread));
            each_place<&BackwardPlan::scores>(
                block_,
                [&](int at, int, int row, int col) {
                    const int from = generated_at(thread, query0 + col, key0 + row);
                    std::uint32_t word[1] = {0};
                    if (in_words) {
                        block_.machine.template lds_read<1>(thread, from, word);
                    } else {
                        FMHA_UNROLL
                        for (int i = 0; i < 4; ++i) {
                            const int next = acc.col_of_register[at % acc.fragment + i] -
                                             acc.col_of_register[at % acc.fragment];
                            word[0] |= block_.machine.lds_read_byte(thread, from + next)
                                       << static_cast<unsigned>(8 * i);
                        }
                    }
                    bytes_.set(thread, at / 4, word[0]);
                },
                4);
        });
    }
};

} // namespace fmha::hip_target
