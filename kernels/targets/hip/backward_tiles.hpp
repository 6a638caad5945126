#pragma once

#include "kernels/targets/hip/backward_plan.hpp"
#include "kernels/targets/hip/row_operations.hpp"
#include "kernels/targets/hip/score_words.hpp"
#include "kernels/targets/hip/tile_memory.hpp"

#include <bit>
#include <cstdint>

namespace fmha::hip_target {

/// Whether a tile of backward is one of scores, whose rows are keys in registers and queries for a program.
template <auto Piece>
inline constexpr bool is_turned = false;
template <>
inline constexpr bool is_turned<&BackwardPlan::scores> = true;
template <>
inline constexpr bool is_turned<&BackwardPlan::score_gradients> = true;

/// f(thread, register, query, key) for every element of a tile of scores.
template <class Tile, class Block, class F>
FMHA_DEVICE void each_score(const Block& block, const Tile&, F f) {
    const AccumulatorPlan& acc = layout_of<Tile::piece>(block);
    block.machine.each([&](int thread) {
        const int here = block.machine.local_thread(thread);
        const int key0 = acc.row_of_wave(block.wave(here)) + acc.row.of_lane(block.lane(here));
        const int query0 = acc.col.of_lane(block.lane(here));
        each_place<Tile::piece>(
            block, [&](int at, int, int row, int col) { f(thread, at, query0 + col, key0 + row); });
    });
}

/// Arithmetic on the tiles of backward's main stage and on one value a query.
template <class Block>
class BackwardRows : public RowOperations<Block, &BackwardPlan::rows> {
    using Base = RowOperations<Block, &BackwardPlan::rows>;

  public:
    FMHA_DEVICE explicit BackwardRows(const Block& block) : Base(block), block_(block) {}

    template <class Tile, class F>
    FMHA_DEVICE void map(Tile& tile, F f) {
        if constexpr (is_turned<Tile::piece>)
            Base::map(tile, [&](float x, int key, int query) { return f(x, query, key); });
        else
            Base::map(tile, f);
    }
    template <class Tile>
    FMHA_DEVICE void hide(Tile& scores, const kernels::HiddenKeys& hidden) {
        map(scores, hidden);
    }
    template <class Tile>
    FMHA_DEVICE void add_distances(Tile& scores, float factor, const kernels::TileAlibi& at) {
        auto reach = this->rows();
        this->set_rows(reach, [&](int query) { return static_cast<float>(at.of(query).reach); });
        each_distance(
            scores, [&](int query) { return at.of(query).key; },
            [&](float score, float x, int thread, int slot) {
                return __builtin_fmaf(factor, __builtin_fabsf(x) - reach.x.at(thread, slot), score);
            });
    }
    template <class Tile>
    FMHA_DEVICE void add_plane(Tile& scores, float factor, const kernels::TilePlane& plane) {
        each_distance(
            scores, [&](int query) { return plane.reference(query); },
            [along = plane.along(factor)](float score, float x, int, int) {
                return __builtin_fmaf(along, x, score);
            });
    }
    /// `top` is never −∞.
    template <class Tile, class Rows>
    FMHA_DEVICE void exp2_minus(Tile& scores, const Rows& top) {
        each_slot(scores, [&](int thread, int at, int slot, int) {
            scores.x.at(thread, at) = block_.machine.exp2(scores.x.at(thread, at) - top.x.at(thread, slot));
        });
    }
    template <class Tile, class Weights, class Rows>
    FMHA_DEVICE void to_score_gradients(Tile& ds, const Weights& weights, const Rows& d) {
        each_slot(ds, [&](int thread, int at, int slot, int) {
            ds.x.at(thread, at) = weights.x.at(thread, at) * (ds.x.at(thread, at) - d.x.at(thread, slot));
        });
    }

  private:
    Block block_;

    /// score = f(score, distance from `key(query)` with its sign, thread, register of the query). Keys are converted once a query.
    template <class Tile, class Key, class F>
    FMHA_DEVICE void each_distance(Tile& scores, Key key, F f) {
        const AccumulatorPlan& acc = layout_of<Tile::piece>(block_);
        auto from = this->rows();
        this->set_rows(from, [&](int query) { return static_cast<float>(key(query)); });
        block_.machine.each([&](int thread) {
            const int here = block_.machine.local_thread(thread);
            const auto key0 =
                static_cast<float>(acc.row_of_wave(block_.wave(here)) + acc.row.of_lane(block_.lane(here)));
            FMHA_UNROLL
            for (int s = 0; s < block_.plan().rows.registers; ++s) from.x.at(thread, s) -= key0;
        });
        each_slot(scores, [&](int thread, int at, int slot, int row) {
            float& score = scores.x.at(thread, at);
            score = f(score, from.x.at(thread, slot) - static_cast<float>(row), thread, slot);
        });
    }

    /// f(thread, register, register of its query, key without the lane's part) for every element of a tile of scores.
    template <class Tile, class F>
    FMHA_DEVICE void each_slot(const Tile&, F f) {
        const AccumulatorPlan& acc = layout_of<Tile::piece>(block_);
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int row = 0; row < acc.row_tiles; ++row) {
                FMHA_UNROLL
                for (int col = 0; col < acc.column_tiles; ++col) {
                    FMHA_UNROLL
                    for (int r = 0; r < acc.fragment; ++r)
                        f(thread, (row * acc.column_tiles + col) * acc.fragment + r,
                          col * block_.plan().column_slots + block_.plan().slot_of_column[r],
                          row * acc.rows + acc.row_of_register[r]);
                }
            }
        });
    }
};

/// Between registers and global memory. Tiles of scores lie across their matrices: word by word, of which neighbouring lanes have
/// elements, or element by element.
template <class Block>
class BackwardMemory {
    using Machine = typename Block::Machine;
    using Words = ScoreWords<Block, &BackwardPlan::score_words, 2>;

  public:
    FMHA_DEVICE explicit BackwardMemory(const Block& block) : block_(block), memory_(block), bias_(block) {}

    FMHA_DEVICE void look_at_bias(const kernels::Matrix& bias, const kernels::Matrix& dbias, bool ahead) {
        bias_in_words_ = ahead && bias_.moves(LineView::of(bias, acc().loaded));
        dbias_in_words_ = bias_.moves(LineView::written(dbias, acc().stored));
    }
    FMHA_DEVICE void prefetch_bias(const kernels::Matrix& bias, std::int64_t row0, std::int64_t key0) {
        bias_.read_if(bias_in_words_, LineView::of(bias, acc().loaded).near_window(row0, key0, tile_rows()));
    }
    template <class Tile>
    FMHA_DEVICE void add_bias(Tile& scores, const kernels::Matrix& bias, std::int64_t row0,
                              std::int64_t key0) {
        const ElementType type = acc().loaded;
        const LineView lines = LineView::of(bias, type);
        if constexpr (Machine::ends_buffers)
            if (moves_words(block_.plan(), type)) {
                const bool ahead = block_.plan().staging.read_ahead;
                // Not in the place of those that were read ahead: the next ones would be moved there, and waited for.
                Words words(block_);
                if (ahead ? bias_in_words_ : words.moves(lines)) {
                    if (ahead)
                        words.copy(bias_);
                    else
                        words.read(lines.near_window(row0, key0, tile_rows()));
                    words.turn();
                } else {
                    words.gather(lines.window(row0, key0, tile_rows()));
                }
                add(scores, type, [&](int thread, int at, int, int) { return words.element(thread, at); });
                return;
            }
        const TileView from = lines.window(row0, key0, tile_rows());
        add(scores, type, [&](int, int at, int query, int key) {
            if (at % reads_under_way == 0) block_.machine.in_order();
            const bool exists = query < from.lines && key < from.elements;
            return exists ? element_bits_at(from.at(query, key), type) : 0U;
        });
    }
    template <auto Of, class Registers>
    FMHA_DEVICE void store(const kernels::Matrix& matrix, Accumulator<Of, Registers>& tile, std::int64_t row0,
                           std::int64_t col0) {
        if constexpr (is_turned<Of>) {
            const ElementType type = acc().stored;
            const LineView lines = LineView::written(matrix, type);
            if constexpr (Machine::ends_buffers)
                if (stores_words(block_.plan(), type)) {
                    store_words(lines, tile, row0, col0);
                    return;
                }
            const TileView to = lines.window(row0, col0, tile_rows());
            each_score(block_, tile, [&](int thread, int at, int query, int key) {
                const float x[4] = {tile.x.at(thread, at), 0.0F, 0.0F, 0.0F};
                if (query < to.lines && key < to.elements && acc().copy_of_wave(block_.wave(thread)) == 0)
                    store_element(const_cast<char*>(to.at(query, key)), // NOLINT(*-const-cast): an output
                                  block_.machine.pack(x, type), type);
            });
        } else {
            const AccumulatorPlan& part = layout_of<Of>(block_);
            const bool of_a_sum = Of == &BackwardPlan::query_gradients && part.stored == ElementType::fp32;
            if constexpr (Machine::ends_buffers)
                if (of_a_sum && block_.plan().gradient_lines == GradientLines::queries_paired) {
                    store_lines(LineView::written(matrix, part.stored).window(row0, col0, part.block_rows),
                                tile);
                    return;
                }
            memory_.store(matrix, tile, row0, col0);
        }
    }
    /// A thread adds to the same elements every time, so that sums of one block need no order between threads. Neighbours, and on
    /// AMD all, are added atomically in any case: sums of one thread to one place keep their order, and nothing waits for the old value.
    template <auto Of, class Registers>
    FMHA_DEVICE void accumulate(const kernels::Matrix& matrix, Accumulator<Of, Registers>& tile,
                                std::int64_t row0, std::int64_t col0, bool atomic) {
        const AccumulatorPlan& acc = layout_of<Of>(block_);
        const TileView to = LineView::written(matrix, ElementType::fp32).window(row0, col0, acc.block_rows);
        // Asked once: a question before every sum costs more than the sum.
        const bool whole = to.lines >= acc.block_rows && to.elements >= acc.column_waves * acc.column_step;
        if constexpr (Machine::sums_at_once == 4)
            if (makes_quads(acc) && to.granule >= 16 && whole) {
                add_quads(to, tile);
                return;
            }
        if constexpr (Machine::ends_buffers)
            if (block_.plan().unit != MatrixUnit::nvidia) {
                add_lines(to, tile);
                return;
            }
        block_.machine.each([&](int thread) {
            const int row1 = acc.row_of_wave(block_.wave(thread)) + acc.row.of_lane(block_.lane(thread));
            const int col1 = acc.col_of_wave(block_.wave(thread)) + acc.col.of_lane(block_.lane(thread));
            const int rows = to.lines - row1, cols = to.elements - col1;
            char* const base =
                const_cast<char*>(to.at(row1, col1)); // NOLINT(*-const-cast): a view of an output
            const int line_bytes = static_cast<int>(to.line_bytes);
            if constexpr (Machine::sums_at_once == 4)
                if (acc.run % 2 == 0 && to.granule >= 8) {
                    each_place<Of>(
                        block_,
                        [&](int at, int, int row, int col) {
                            if (row >= rows || col >= cols) return;
                            block_.machine.atomic_add_pair(
                                reinterpret_cast<float*>(base + row * line_bytes + col * 4),
                                tile.x.at(thread, at), tile.x.at(thread, at + 1));
                        },
                        2);
                    return;
                }
            each_place<Of>(block_, [&](int at, int, int row, int col) {
                if (row >= rows || col >= cols) return;
                auto* const sum = reinterpret_cast<float*>(base + row * line_bytes + col * 4);
                if (atomic || Machine::sums_at_once == 1)
                    block_.machine.atomic_add(sum, tile.x.at(thread, at));
                else
                    *sum += tile.x.at(thread, at);
            });
        });
    }

  private:
    Block block_;
    TileMemory<Block, &BackwardPlan::rows> memory_;
    Words bias_; ///< of the next tile
    bool bias_in_words_ = false, dbias_in_words_ = false;

    /// Of a tile of scores.
    FMHA_DEVICE const AccumulatorPlan& acc() const { return layout_of<&BackwardPlan::scores>(block_); }
    FMHA_DEVICE int tile_rows() const { return block_.plan().rows.block_rows; }

    /// Adds bits(thread, register, query, key) to every score.
    template <class Tile, class Bits>
    FMHA_DEVICE void add(Tile& scores, ElementType type, Bits bits) {
        each_score(block_, scores, [&](int thread, int at, int query, int key) {
            float& x = scores.x.at(thread, at);
            x = block_.machine.settled(
                x + kernels::Decisions().to_base2(block_.machine.unpack(bits(thread, at, query, key), type)));
        });
    }
    template <class Tile>
    FMHA_DEVICE void store_words(const LineView& lines, const Tile& tile, std::int64_t row0,
                                 std::int64_t col0) {
        Words words(block_);
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int at = 0; at < acc().registers; at += 2) {
                const float x[2] = {tile.x.at(thread, at), tile.x.at(thread, at + 1)};
                words.set(thread, at / 2, block_.machine.pack(x, acc().stored));
            }
        });
        if (block_.plan().staging.read_ahead ? dbias_in_words_ : words.moves(lines)) {
            words.turn();
            words.write(lines.near_window(row0, col0, tile_rows()));
        } else {
            words.scatter(lines.window(row0, col0, tile_rows()));
        }
    }

    /// op(thread, offset in bytes, whether the element has a column, element, bytes that exist). Partial sums lie near one another
    /// the end of the last line says for all lanes which of their rows exist.
    template <auto Of, class Registers, class Op>
    FMHA_DEVICE void each_of_lines(const TileView& to, const Accumulator<Of, Registers>& tile, Op op) {
        const AccumulatorPlan& acc = layout_of<Of>(block_);
        const int line_bytes = static_cast<int>(to.line_bytes);
        const int existing = bytes_of_lines(to.lines, line_bytes, to.elements * 4);
        block_.machine.each([&](int thread) {
            const int row1 = acc.row_of_wave(block_.wave(thread)) + acc.row.of_lane(block_.lane(thread));
            const int col1 = acc.col_of_wave(block_.wave(thread)) + acc.col.of_lane(block_.lane(thread));
            each_place<Of>(block_, [&](int at, int, int row, int col) {
                const int place = (row1 + row) * line_bytes + (col1 + col) * 4;
                op(thread, place, col1 + col < to.elements, tile.x.at(thread, at), existing);
            });
        });
    }
    template <auto Of, class Registers>
    FMHA_DEVICE void add_lines(const TileView& to, const Accumulator<Of, Registers>& tile) {
        char* const base = const_cast<char*>(to.data); // NOLINT(*-const-cast): a view of an output
        each_of_lines(to, tile, [&](int thread, int place, bool exists, float x, int existing) {
            block_.machine.add_to_buffer(thread, base, place, exists, x, existing);
        });
    }
    template <auto Of, class Registers>
    FMHA_DEVICE void store_lines(const TileView& to, const Accumulator<Of, Registers>& tile) {
        char* const base = const_cast<char*>(to.data); // NOLINT(*-const-cast): a view of an output
        each_of_lines(to, tile, [&](int thread, int place, bool exists, float x, int existing) {
            block_.machine.write_to_buffer(thread, base, place, exists, std::bit_cast<std::uint32_t>(x),
                                           existing);
        });
    }
    /// Whether neighbouring lanes hold neighbouring pairs of a row, and a thread two such pairs side by side.
    FMHA_DEVICE static constexpr bool makes_quads(const AccumulatorPlan& acc) {
        return acc.run == 2 && acc.col.lane[0] == 2 && acc.row.lane[0] == 0 && acc.column_tiles % 2 == 0;
    }
    /// Neighbouring lanes trade pairs, so that each has four neighbours of a row: the lower lane those of one column tile, the
    /// upper one those of the next. Half as many sums, of twice the bytes.
    template <auto Of, class Registers>
    FMHA_DEVICE void add_quads(const TileView& to, Accumulator<Of, Registers>& tile) {
        const AccumulatorPlan& acc = layout_of<Of>(block_);
        auto given = block_.template registers<float, 2>();
        auto taken = block_.template registers<float, 2>();
        const int line_bytes = static_cast<int>(to.line_bytes);
        FMHA_UNROLL
        for (int row = 0; row < acc.row_tiles; ++row) {
            FMHA_UNROLL
            for (int col = 0; col < acc.column_tiles; col += 2) {
                FMHA_UNROLL
                for (int r = 0; r < acc.fragment; r += 2) {
                    const int low = (row * acc.column_tiles + col) * acc.fragment + r;
                    const int high = low + acc.fragment;
                    // A choice of values: one of places would put the tile into memory.
                    block_.machine.each([&](int thread) {
                        FMHA_UNROLL
                        for (int i = 0; i < 2; ++i) {
                            const float x = tile.x.at(thread, low + i), y = tile.x.at(thread, high + i);
                            given.at(thread, i) = is_upper(thread) ? x : y;
                        }
                    });
                    block_.machine.exchange(taken, given, 1);
                    block_.machine.each([&](int thread) {
                        const int lane = block_.lane(thread), wave = block_.wave(thread);
                        const bool upper = is_upper(thread);
                        char* const base = const_cast<char*>( // NOLINT(*-const-cast): a view of an output
                            to.at(acc.row_of_wave(wave) + acc.row.of_lane(lane),
                                  acc.col_of_wave(wave) + acc.col.of_lane(lane & ~1) +
                                      (upper ? acc.cols : 0)));
                        float x[4];
                        FMHA_UNROLL
                        for (int i = 0; i < 2; ++i) {
                            const float below = tile.x.at(thread, low + i),
                                        above = tile.x.at(thread, high + i);
                            const float own = upper ? above : below;
                            x[i] = upper ? taken.at(thread, i) : own;
                            x[2 + i] = upper ? own : taken.at(thread, i);
                        }
                        block_.machine.atomic_add_quad(
                            reinterpret_cast<float*>(base +
                                                     (row * acc.rows + acc.row_of_register[r]) * line_bytes +
                                                     col * acc.cols * 4),
                            x);
                    });
                }
            }
        }
    }
    FMHA_DEVICE bool is_upper(int thread) const { return (block_.lane(thread) & 1) != 0; }
};

} // namespace fmha::hip_target
