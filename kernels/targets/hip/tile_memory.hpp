#pragma once

#include "kernels/programs/decisions.hpp"
#include "kernels/targets/hip/accumulator.hpp"
#include "kernels/targets/hip/line_view.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Reads of one tile that are under way together, each of which takes registers.
inline constexpr int reads_under_way = 16;

/// The bits of one element.
FMHA_DEVICE std::uint32_t element_bits_at(const char* from, ElementType type) {
    if (element_bits(type) == 32) return *reinterpret_cast<const std::uint32_t*>(from);
    if (element_bits(type) == 16) return *reinterpret_cast<const std::uint16_t*>(from);
    return *reinterpret_cast<const std::uint8_t*>(from);
}
FMHA_DEVICE void store_element(char* to, std::uint32_t bits, ElementType type) {
    if (element_bits(type) == 32)
        *reinterpret_cast<std::uint32_t*>(to) = bits;
    else if (element_bits(type) == 16)
        *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(bits);
    else
        *reinterpret_cast<std::uint8_t*>(to) = static_cast<std::uint8_t>(bits);
}

/// Between registers and global memory: tiles and row vectors, element by element of a lane.
template <class Block, auto Piece>
class TileMemory {
  public:
    FMHA_DEVICE explicit TileMemory(const Block& block) : block_(block) {}

    template <class Tile>
    FMHA_DEVICE void add_bias(Tile& scores, const kernels::Matrix& bias, std::int64_t row0,
                              std::int64_t key0) {
        const AccumulatorPlan& acc = layout_of<Tile::piece>(block_);
        const ElementType type = acc.loaded;
        const TileView from = LineView::of(bias, type).window(row0, key0, plan().block_rows);
        const int run = acc.run;
        // Beside products of 8 bits pairs cost 22 instructions a tile more (gfx942, 128x128).
        const bool by_pairs = Block::Machine::adds_products &&
                              block_.cfg().signature.data_type == DataType::bf16 &&
                              type == ElementType::bf16 && run % 2 == 0;
        const bool settles = settles_sums(acc, by_pairs);
        block_.machine.each([&](int thread) {
            const int here = block_.machine.local_thread(thread);
            const int row_of_lane = block_.wave(here) * plan().wave_rows + acc.row.of_lane(block_.lane(here));
            const int col_of_lane = acc.col_of_wave(block_.wave(here)) + acc.col.of_lane(block_.lane(here));
            const auto add_bits = [&](int at, const std::uint32_t* bits) {
                const auto settle = [&](float& x) {
                    if (settles) x = block_.machine.settled(x);
                };
                if constexpr (Block::Machine::adds_products)
                    if (by_pairs) {
                        FMHA_UNROLL
                        for (int i = 0; i < run; i += 2) {
                            const float biases[2] = {block_.machine.unpack(bits[i], type),
                                                     block_.machine.unpack(bits[i + 1], type)};
                            float* const pair = &scores.x.at(thread, at + i);
                            block_.machine.add_products(pair, kernels::Decisions().to_base2(1.0F), biases);
                            settle(pair[0]);
                            settle(pair[1]);
                        }
                        return;
                    }
                FMHA_UNROLL
                for (int i = 0; i < run; ++i) {
                    float& x = scores.x.at(thread, at + i);
                    x += kernels::Decisions().to_base2(block_.machine.unpack(bits[i], type));
                    settle(x);
                }
            };
            const auto read = [&](int row, int col, bool at_once, std::uint32_t* bits) {
                from.elements_at(block_.machine, thread, row_of_lane + row, col_of_lane + col, run, at_once,
                                 bits);
            };
            const auto add = [&](int at, int row, int col, bool at_once) {
                std::uint32_t bits[8];
                read(row, col, at_once, bits);
                add_bits(at, bits);
            };
            const bool at_once = from.reads_at_once(run);
            if constexpr (Block::Machine::ends_buffers) {
                // Biases are added where both ways of reading them have met: compilers copied the sums of each way.
                const auto read_group = [&](int count, const int* rows, const int* cols,
                                            std::uint32_t* bits) {
                    if (at_once) {
                        block_.machine.in_order();
                        FMHA_UNROLL
                        for (int i = 0; i < count; i += run)
                            from.elements_of_lines(block_.machine, thread, row_of_lane + rows[i],
                                                   col_of_lane + cols[i], run, bits + i);
                    } else {
                        FMHA_UNROLL
                        for (int i = 0; i < count; i += run) read(rows[i], cols[i], false, bits + i);
                    }
                };
                add_by_groups<Tile::piece>(read_group, add_bits);
            } else if (at_once) {
                // Asked once, because between branches no two reads would be under way together; and sums that are settled
                // in their branch do not wait for the end of both, with a whole tile of biases in registers.
                each_place<Tile::piece>(
                    block_,
                    [&](int at, int, int row, int col) {
                        if (at % reads_under_way == 0) block_.machine.in_order();
                        add(at, row, col, true);
                    },
                    run);
            } else {
                each_place<Tile::piece>(
                    block_, [&](int at, int, int row, int col) { add(at, row, col, false); }, run);
            }
        });
    }

    template <auto Of, class Registers>
    FMHA_DEVICE void load(Accumulator<Of, Registers>& tile, const kernels::Matrix& matrix, std::int64_t row0,
                          std::int64_t col0) {
        const AccumulatorPlan& acc = layout_of<Of>(block_);
        const ElementType type = acc.loaded;
        const TileView from = LineView::of(matrix, type).window(row0, col0, plan().block_rows);
        const int run = acc.run;
        const bool at_once = matrix.whole_units || from.reads_at_once(run);
        block_.machine.each([&](int thread) {
            const int row1 = block_.wave(thread) * plan().wave_rows + acc.row.of_lane(block_.lane(thread));
            const int col1 = acc.col.of_lane(block_.lane(thread));
            each_place<Of>(
                block_,
                [&](int at, int, int row, int col) {
                    std::uint32_t bits[8];
                    from.elements_at(block_.machine, thread, row1 + row, col1 + col, run, at_once, bits);
                    FMHA_UNROLL
                    for (int i = 0; i < run; ++i)
                        tile.x.at(thread, at + i) = block_.machine.unpack(bits[i], type);
                },
                run);
        });
    }
    template <class Registers>
    FMHA_DEVICE void load(RowValues<Registers>& values, const kernels::Matrix& matrix, std::int64_t row0) {
        const LineView from = LineView::of(matrix, ElementType::fp32);
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s) {
                const std::int64_t row = row_at(row0, thread, s);
                values.x.at(thread, s) =
                    row < from.lines ? *reinterpret_cast<const float*>(from.at(row, 0)) : 0.0F;
            }
        });
    }

    template <auto Of, class Registers>
    FMHA_DEVICE void store(const kernels::Matrix& matrix, Accumulator<Of, Registers>& tile, std::int64_t row0,
                           std::int64_t col0) {
        const AccumulatorPlan& acc = layout_of<Of>(block_);
        const ElementType type = acc.stored;
        const TileView to = LineView::written(matrix, type).window(row0, col0, acc.block_rows);
        const int size = element_bits(type) / 8, per_word = 4 / size, run = acc.run, words = run / per_word;
        const bool whole = words > 0 && to.granule >= run * size;
        if (acc.stores_units && to.granule >= 16 && to.elements % 8 == 0) {
            store_units(to, tile);
            return;
        }
        block_.machine.each([&](int thread) {
            thread = behind_loops(thread);
            const int row0_of_lane =
                acc.row_of_wave(block_.wave(thread)) + acc.row.of_lane(block_.lane(thread));
            const int row1 = to.heads.row(row0_of_lane);
            const auto below = [&](int row) {
                if constexpr (several_heads) return to.heads.row(row0_of_lane + row) - row1;
                return row;
            };
            const auto behind = [&](int row) -> std::int64_t {
                if constexpr (several_heads) return to.to_head(row0_of_lane + row) - to.to_head(row0_of_lane);
                return 0;
            };
            const int col1 = acc.col_of_wave(block_.wave(thread)) + acc.col.of_lane(block_.lane(thread));
            const int rows = to.lines - row1, cols = to.elements - col1;
            char* const base = const_cast<char*>( // NOLINT(*-const-cast): a view of an output
                to.at(row1, col1) + to.to_head(row0_of_lane));
            if (whole) {
                const int line_bytes = static_cast<int>(to.line_bytes);
                each_place<Of>(
                    block_,
                    [&](int at, int, int row, int col) {
                        if (below(row) >= rows || col >= cols) return;
                        std::uint32_t packed[8];
                        FMHA_UNROLL
                        for (int w = 0; w < words; ++w) {
                            float x[4];
                            FMHA_UNROLL
                            for (int i = 0; i < per_word; ++i)
                                x[i] = tile.x.at(thread, at + w * per_word + i);
                            packed[w] = block_.machine.pack(x, type);
                        }
                        write_words(base + behind(row) + below(row) * line_bytes + col * size, packed, words);
                    },
                    run);
                return;
            }
            each_place<Of>(block_, [&](int at, int, int row, int col) {
                const float x[4] = {tile.x.at(thread, at), 0.0F, 0.0F, 0.0F};
                if (below(row) < rows && col < cols)
                    store_element(base + behind(row) + below(row) * to.line_bytes + col * to.element_distance,
                                  block_.machine.pack(x, type), type);
            });
        });
    }
    template <class Registers>
    FMHA_DEVICE void store(const kernels::Matrix& matrix, RowValues<Registers>& values, std::int64_t row0) {
        const LineView to = LineView::of(matrix, ElementType::fp32);
        block_.machine.each([&](int thread) {
            thread = behind_loops(thread);
            if ((block_.lane(thread) & plan().sharing_lanes) != 0) return;
            if (plan().wave_rows == 0 && block_.wave(thread) != 0) return;
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s) {
                std::int64_t row = row_at(row0, thread, s), to_head = 0;
                if (matrix.heads.any()) {
                    const auto in_tile = static_cast<std::int32_t>(row - row0);
                    row = row0 + matrix.heads.row(in_tile);
                    to_head = matrix.heads.head(in_tile) * matrix.tensor.head_stride * std::int64_t{4};
                }
                if (row < matrix.rows.written)
                    *reinterpret_cast<float*>(
                        const_cast<char*>(to.at(row, 0) + to_head)) = // NOLINT(*-const-cast)
                        values.x.at(thread, s);
            }
        });
    }

  private:
    Block block_;

    /// Else all rows of a lane are of one head.
    static constexpr bool several_heads = Block::template may<Piece>(&RowPlan::several_heads);

    /// The number of a thread that stores, behind the loops.
    FMHA_DEVICE int behind_loops(int thread) const {
        return plan().stores_anew ? block_.machine.local_thread(thread) : thread;
    }

    /// Whether sums with biases are settled one by one, which keeps their order, and so registers. Not those of fp16 on RDNA, whose additions
    /// take a bias as it is stored and gain by another order, nor pairs of large tiles, whose reads are asked for sooner without.
    FMHA_DEVICE static bool settles_sums(const AccumulatorPlan& acc, bool by_pairs) {
        constexpr bool is_rdna = Block::Machine::ends_buffers && !Block::Machine::adds_products;
        if (by_pairs) return acc.registers <= 2 * reads_under_way;
        return !is_rdna || acc.loaded != ElementType::fp16;
    }

    /// Adds biases by groups of reads that are under way together, each before or behind the reads of the next group (RowPlan::biases_ahead).
    template <auto Of, class ReadGroup, class AddBits>
    FMHA_DEVICE void add_by_groups(const ReadGroup& read_group, const AddBits& add_bits) {
        const AccumulatorPlan& acc = layout_of<Of>(block_);
        const int run = acc.run;
        constexpr int two_groups = 2 * reads_under_way;
        const bool ahead = plan().biases_ahead;
        int rows[reads_under_way] = {}, cols[reads_under_way] = {};
        std::uint32_t bits[two_groups];
        const auto add_group = [&](int group) {
            FMHA_UNROLL
            for (int i = group; i < group + reads_under_way && i < acc.registers; i += run)
                add_bits(i, bits + i % two_groups);
        };
        each_place<Of>(
            block_,
            [&](int at, int, int row, int col) {
                const int last = at % reads_under_way, first = at - last;
                rows[last] = row;
                cols[last] = col;
                if (last + run < reads_under_way && at + run < acc.registers) return;
                read_group(last + run, rows, cols, bits + first % two_groups);
                if (!ahead)
                    add_group(first);
                else if (first > 0)
                    add_group(first - reads_under_way);
            },
            run);
        if (ahead) add_group((acc.registers - 1) / reads_under_way * reads_under_way);
    }

    FMHA_DEVICE const RowPlan& plan() const { return block_.template piece<Piece>(); }
    /// The row of slot s of a thread's row vectors, of a block that begins at `row0`.
    FMHA_DEVICE std::int64_t row_at(std::int64_t row0, int thread, int s) const {
        return row0 + block_.wave(thread) * plan().wave_rows + plan().row.of_lane(block_.lane(thread)) +
               s / plan().slots * plan().tile_rows + plan().row_of_slot[s % plan().slots];
    }

    /// Tiles of 8 columns, four at a time: lane i of the four that share a row gets the words of tile i from all of them.
    template <auto Of, class Registers>
    FMHA_DEVICE void store_units(const TileView& to, Accumulator<Of, Registers>& tile) {
        constexpr int lanes = 4, in_tile = 8;
        const AccumulatorPlan& acc = layout_of<Of>(block_);
        auto word = block_.template registers<std::uint32_t, lanes>();
        auto sent = block_.template registers<std::uint32_t, lanes / 2>();
        auto got = block_.template registers<std::uint32_t, lanes / 2>();
        // Word k of every pair that differs in the bit goes to the lane that differs in it.
        const auto trade = [&](int bit) {
            const auto own = [&](int pair) { return bit == 1 ? 2 * pair : pair; };
            block_.machine.each([&](int thread) {
                const bool upper = (block_.lane(thread) & bit) != 0;
                FMHA_UNROLL
                for (int pair = 0; pair < 2; ++pair)
                    sent.at(thread, pair) =
                        upper ? word.at(thread, own(pair)) : word.at(thread, own(pair) + bit);
            });
            block_.machine.exchange(got, sent, bit);
            block_.machine.each([&](int thread) {
                const bool upper = (block_.lane(thread) & bit) != 0;
                FMHA_UNROLL
                for (int pair = 0; pair < 2; ++pair) {
                    const std::uint32_t low = word.at(thread, own(pair)),
                                        high = word.at(thread, own(pair) + bit);
                    word.at(thread, own(pair)) = upper ? got.at(thread, pair) : low;
                    word.at(thread, own(pair) + bit) = upper ? high : got.at(thread, pair);
                }
            });
        };
        // Addresses are computed also where nothing is stored: the exchanges of the next four tiles do not overlap with a branch.
        char* const base = const_cast<char*>(to.data); // NOLINT(*-const-cast): a view of an output
        const int line_bytes = static_cast<int>(to.line_bytes);
        FMHA_UNROLL
        for (int first = 0; first < acc.column_tiles; first += lanes) {
            FMHA_UNROLL
            for (int half = 0; half < acc.fragment; half += 2) {
                block_.machine.each([&](int thread) {
                    FMHA_UNROLL
                    for (int i = 0; i < lanes; ++i) {
                        const int at = (first + i) * acc.fragment + half;
                        const float x[4] = {tile.x.at(thread, at), tile.x.at(thread, at + 1), 0.0F, 0.0F};
                        word.at(thread, i) = block_.machine.pack(x, acc.stored);
                    }
                });
                trade(1);
                trade(2);
                block_.machine.each([&](int thread) {
                    const int tile_row = acc.row_of_wave(block_.wave(thread)) +
                                         acc.row.of_lane(block_.lane(thread)) + acc.row_of_register[half];
                    const int row = to.heads.row(tile_row);
                    const int col = (first + block_.lane(thread) % lanes) * in_tile;
                    const std::uint32_t unit[lanes] = {word.at(thread, 0), word.at(thread, 1),
                                                       word.at(thread, 2), word.at(thread, 3)};
                    char* const place =
                        base + to.to_head(tile_row) + row * line_bytes + col * to.element_size;
                    if (row < to.lines && col < to.elements) write_words(place, unit, lanes);
                });
            }
        }
    }

    FMHA_DEVICE static void write_words(char* to, const std::uint32_t* words, int count) {
        if (count >= 4) {
            FMHA_UNROLL
            for (int w = 0; w < count; w += 4)
                *reinterpret_cast<Words<4>*>(to + 4 * w) = {words[w], words[w + 1], words[w + 2],
                                                            words[w + 3]};
        } else if (count == 2) {
            *reinterpret_cast<Words<2>*>(to) = {words[0], words[1]};
        } else {
            *reinterpret_cast<Words<1>*>(to) = {words[0]};
        }
    }
};

} // namespace fmha::hip_target
