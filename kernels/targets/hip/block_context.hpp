#pragma once

#include "kernels/programs/formats.hpp"
#include "kernels/targets/hip/weights.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// One fp32 value for every row that a lane holds; lanes that share a row hold the same.
template <class Registers>
struct RowValues {
    Registers x;
};

/// The random bytes of a score tile, in LDS: a line is a key with its rows.
struct RandomTile {};

/// The block context of kernels/programs/README.md on fragments: one source for every architecture and for the
/// emulated machine. A wave owns whole rows; what differs comes from the plan and the machine.
template <class Machine, class Setup>
class BlockContext : public Weights<Machine, Setup> {
    using Base = Weights<Machine, Setup>;
    using Base::each_place;
    using Base::lane;
    using Base::machine_;
    using Base::maximum;
    using Base::sharing_lanes;
    using Base::wave_row;
    using Rows = RowValues<RegistersOf<Machine, Setup, float, &BlockPlan::row_registers>>;

    static constexpr float infinity = __builtin_inff();
    static constexpr int reads_under_way = 16; // elements of a tile; each takes a register

  public:
    using Base::Base;
    using Base::cfg;
    using Base::narrow;
    using Base::plan;
    using Base::weight_unit;

    FMHA_DEVICE auto scores() const {
        auto x = this->template registers<float, &BlockPlan::score_registers>();
        return ScoreTile<decltype(x)>{x};
    }
    FMHA_DEVICE auto output() const {
        auto x = this->template registers<float, &BlockPlan::output_registers>();
        return OutputTile<decltype(x)>{x};
    }
    FMHA_DEVICE Rows rows() const { return {this->template registers<float, &BlockPlan::row_registers>()}; }
    FMHA_DEVICE RandomTile random_bytes() const { return {}; }

    FMHA_DEVICE void fill(Rows& rows, float value) {
        machine_.each([&](int thread) {
            FMHA_UNROLL
            for (int s = 0; s < plan().row_registers; ++s) rows.x.at(thread, s) = value;
        });
    }
    template <class Tile>
    FMHA_DEVICE void fill(Tile& tile, float value) {
        map(tile, [&](float, int, int) { return value; });
    }

    template <class Tile, class F>
    FMHA_DEVICE void map(Tile& tile, F f) {
        const ProductPlan& p = tile.product(plan());
        machine_.each([&](int thread) {
            const int here = machine_.local(thread);
            const int row0 = wave_row(here) + p.acc_row.of_lane(lane(here));
            const int col0 = p.acc_col.of_lane(lane(here));
            each_place(tile, [&](int at, int, int row, int col) {
                tile.x.at(thread, at) = f(tile.x.at(thread, at), row0 + row, col0 + col);
            });
        });
    }
    template <class F>
    FMHA_DEVICE void map_rows(Rows& to, const Rows& a, const Rows& b, F f) {
        machine_.each([&](int thread) {
            FMHA_UNROLL
            for (int s = 0; s < plan().row_registers; ++s)
                to.x.at(thread, s) = f(a.x.at(thread, s), b.x.at(thread, s));
        });
    }

    /// tanh(x) = 1 − 2 / (1 + exp(2x)): absolute error of a few 2^-24, and exact limits.
    template <class Tile>
    FMHA_DEVICE void soft_cap(Tile& scores, float inner, float outer) {
        constexpr float two_log2_e = 2.88539008177792681F;
        map(scores, [&](float x, int, int) {
            return outer * (1.0F - 2.0F / (1.0F + machine_.exp2(x * inner * two_log2_e)));
        });
    }

    template <class Tile>
    FMHA_DEVICE void add_bias(Tile& scores, const kernels::Matrix& bias, std::int64_t row0,
                              std::int64_t key0) {
        const ElementType type = plan().type_bias;
        const ProductPlan& p = plan().first;
        const TileView from = LineView::of(bias, type).window(row0, key0, cfg().algorithm.tile.m0);
        const int run = p.acc_run();
        machine_.each([&](int thread) {
            const int here = machine_.local(thread);
            const int row_of_lane = wave_row(here) + p.acc_row.of_lane(lane(here));
            const int col_of_lane = p.acc_col.of_lane(lane(here));
            const auto add = [&](int at, int row, int col, bool at_once) {
                std::uint32_t bits[8];
                from.elements_at(machine_, thread, row_of_lane + row, col_of_lane + col, run, at_once, bits);
                FMHA_UNROLL
                for (int i = 0; i < run; ++i) {
                    float& x = scores.x.at(thread, at + i);
                    x = machine_.settled(x + this->to_base2(machine_.unpack(bits[i], type)));
                }
            };
            // Asked once, because between branches no two reads would be under way together; and sums that are settled
            // in their branch do not wait for the end of both, with a whole tile of biases in registers.
            if (from.reads_at_once(run))
                each_place(
                    scores,
                    [&](int at, int, int row, int col) {
                        if (at % reads_under_way == 0) machine_.in_order();
                        add(at, row, col, true);
                    },
                    run);
            else
                each_place(
                    scores, [&](int at, int, int row, int col) { add(at, row, col, false); }, run);
        });
    }

    template <class Tile>
    FMHA_DEVICE void raise_to_row_max(Rows& top, Rows& shrink, Tile& scores) {
        Rows largest = rows();
        machine_.each([&](int thread) {
            FMHA_UNROLL
            for (int s = 0; s < plan().row_registers; ++s) largest.x.at(thread, s) = top.x.at(thread, s);
            each_place(scores, [&](int at, int slot, int, int) {
                largest.x.at(thread, slot) = maximum(largest.x.at(thread, slot), scores.x.at(thread, at));
            });
        });
        combine(largest, [](float a, float b) { return maximum(a, b); });
        machine_.each([&](int thread) {
            FMHA_UNROLL
            for (int s = 0; s < plan().row_registers; ++s) {
                const float before = top.x.at(thread, s), now = largest.x.at(thread, s);
                shrink.x.at(thread, s) = now == before ? 1.0F : machine_.exp2(before - now);
                top.x.at(thread, s) = now;
            }
        });
    }
    template <class Tile>
    FMHA_DEVICE void exp2_minus(Tile& scores, const Rows& top) {
        machine_.each([&](int thread) {
            each_place(scores, [&](int at, int slot, int, int) {
                const float reference = top.x.at(thread, slot) == -infinity ? 0.0F : top.x.at(thread, slot);
                scores.x.at(thread, at) = machine_.exp2(scores.x.at(thread, at) - reference);
            });
        });
    }
    FMHA_DEVICE void scale_rows(Rows& rows, const Rows& factor) {
        map_rows(rows, rows, factor, [](float a, float b) { return a * b; });
    }
    /// Once the maxima have settled, a wave's factors are all 1. Looking pays where the tile is large: the branch keeps
    /// what stands before it from overlapping with what comes after.
    template <class Tile>
    FMHA_DEVICE void scale_rows(Tile& tile, const Rows& factor) {
        if (plan().output_registers > plan().score_registers) {
            const bool scales = machine_.any([&](int thread) {
                bool differs = false;
                FMHA_UNROLL
                for (int s = 0; s < plan().row_registers; ++s) differs |= factor.x.at(thread, s) != 1.0F;
                return differs;
            });
            if (!scales) return;
        }
        machine_.each([&](int thread) {
            each_place(tile, [&](int at, int slot, int, int) {
                tile.x.at(thread, at) *= factor.x.at(thread, slot);
            });
        });
    }
    template <class Tile>
    FMHA_DEVICE void add_row_sums(Rows& total, Tile& scores) {
        Rows sum = rows();
        fill(sum, 0.0F);
        machine_.each([&](int thread) {
            each_place(scores, [&](int at, int slot, int, int) {
                sum.x.at(thread, slot) += scores.x.at(thread, at);
            });
        });
        combine(sum, [](float a, float b) { return a + b; });
        map_rows(total, total, sum, [](float a, float b) { return a + b; });
    }
    FMHA_DEVICE float log(float x) const { return machine_.log(x); }

    /// The bytes of a wave's own rows, so that no other wave has to be waited for. A lane's 16 bytes are two runs
    /// of eight rows of one key (D-5).
    FMHA_DEVICE void generate(const RandomTile&, const kernels::RandomSquares& squares, std::int64_t row0,
                              std::int64_t key0) {
        constexpr int half = 16; // rows between the two runs of a lane
        const int keys = cfg().algorithm.tile.n0, wave = plan().wave_size;
        const bool whole = plan().wave_rows % kernels::RandomSquares::side == 0;
        const int rows = whole ? kernels::RandomSquares::side : half;
        const int tasks = plan().wave_rows / rows * 2 * keys;
        machine_.wave_barrier(); // the last tile's bytes have been used
        machine_.each([&](int thread) {
            FMHA_NO_UNROLL
            for (int task = lane(thread); task < tasks; task += wave) {
                const int key = task % keys, upper = task / keys % 2, group = task / keys / 2;
                const int row = wave_row(thread) + group * rows;
                const std::int64_t global = row0 + row;
                const kernels::PhiloxWords words = squares.lane_bytes(
                    global / 32, (key0 + key) / 32, 32 * upper + static_cast<int>((key0 + key) % 32));
                const int to = plan().random.offset + key * plan().random.line_bytes + row + 8 * upper;
                const bool second = !whole && global % 32 == half;
                const std::uint32_t low[2] = {second ? words.word[2] : words.word[0],
                                              second ? words.word[3] : words.word[1]};
                machine_.template lds_write<2>(thread, to, low);
                if (whole) machine_.template lds_write<2>(thread, to + half, words.word + 2);
            }
        });
        machine_.wave_barrier();
    }
    template <class Tile>
    FMHA_DEVICE void drop(Tile& scores, const RandomTile&, std::uint8_t threshold) {
        each_random(scores, [&](int thread, int at, int, int, std::uint32_t byte) {
            if (byte > threshold) scores.x.at(thread, at) = 0.0F;
        });
    }

    template <class Registers>
    FMHA_DEVICE void store(const kernels::Matrix& matrix, OutputTile<Registers>& tile, std::int64_t row0,
                           std::int64_t col0) {
        const ProductPlan& p = plan().second;
        const ElementType type = plan().type_o;
        const TileView to = LineView::written(matrix, type).window(row0, col0, cfg().algorithm.tile.m0);
        const int size = element_bits(type) / 8, per_word = 4 / size, run = p.acc_run(),
                  words = run / per_word;
        const bool whole = words > 0 && to.granule >= run * size;
        machine_.each([&](int thread) {
            const int row1 = wave_row(thread) + p.acc_row.of_lane(lane(thread));
            const int col1 = p.acc_col.of_lane(lane(thread));
            const int rows = to.lines - row1, cols = to.elements - col1;
            char* const base =
                const_cast<char*>(to.at(row1, col1)); // NOLINT(*-const-cast): a view of an output
            if (whole) {
                const int line_bytes = static_cast<int>(to.line_bytes);
                each_place(
                    tile,
                    [&](int at, int, int row, int col) {
                        if (row >= rows || col >= cols) return;
                        std::uint32_t packed[8];
                        FMHA_UNROLL
                        for (int w = 0; w < words; ++w) {
                            float x[4];
                            FMHA_UNROLL
                            for (int i = 0; i < per_word; ++i)
                                x[i] = tile.x.at(thread, at + w * per_word + i);
                            packed[w] = machine_.pack(x, type);
                        }
                        write_words(base + row * line_bytes + col * size, packed, words);
                    },
                    run);
                return;
            }
            each_place(tile, [&](int at, int, int row, int col) {
                const float x[4] = {tile.x.at(thread, at), 0.0F, 0.0F, 0.0F};
                if (row < rows && col < cols)
                    store_element(base + row * to.line_bytes + col * to.element_distance,
                                  machine_.pack(x, type), type);
            });
        });
    }
    FMHA_DEVICE void store(const kernels::Matrix& matrix, const RandomTile&, std::int64_t row0,
                           std::int64_t key0) {
        const LineView to = LineView::of(matrix, ElementType::uint8);
        auto places = scores();
        each_random(places, [&](int, int, int row, int col, std::uint32_t byte) {
            if (row0 + row < matrix.rows.written && key0 + col < matrix.cols.written)
                *const_cast<char*>(
                    to.at(row0 + row, key0 + col)) = // NOLINT(*-const-cast): a view of an output
                    static_cast<char>(byte);
        });
    }
    FMHA_DEVICE void store(const kernels::Matrix& matrix, Rows& rows, std::int64_t row0) {
        const LineView to = LineView::of(matrix, ElementType::fp32);
        machine_.each([&](int thread) {
            if ((lane(thread) & sharing_lanes()) != 0) return;
            FMHA_UNROLL
            for (int s = 0; s < plan().row_registers; ++s) {
                const std::int64_t row =
                    row0 + wave_row(thread) + plan().first.acc_row.of_lane(lane(thread)) +
                    s / plan().row_slots * plan().first.rows + plan().row_of_slot[s % plan().row_slots];
                if (row < matrix.rows.written)
                    *reinterpret_cast<float*>(const_cast<char*>(to.at(row, 0))) = // NOLINT(*-const-cast)
                        rows.x.at(thread, s);
            }
        });
    }

  private:
    template <class Tile, class F>
    FMHA_DEVICE void each_random(Tile& scores, F f) {
        const ProductPlan& p = plan().first;
        machine_.each([&](int thread) {
            const int here = machine_.local(thread);
            const int row0 = wave_row(here) + p.acc_row.of_lane(lane(here));
            const int col0 = p.acc_col.of_lane(lane(here));
            each_place(scores, [&](int at, int, int row, int col) {
                if (at % reads_under_way == 0) machine_.in_order();
                const int from = plan().random.offset + (col0 + col) * plan().random.line_bytes + row0 + row;
                f(thread, at, row0 + row, col0 + col, machine_.lds_read_byte(thread, from));
            });
        });
    }

    /// Combines the values that the lanes of a row have of it.
    template <class F>
    FMHA_DEVICE void combine(Rows& rows, F f) {
        const int mask = sharing_lanes();
        FMHA_UNROLL
        for (int bit = 1; bit < 64; bit *= 2) {
            if ((mask & bit) == 0) continue;
            Rows other = this->rows();
            machine_.exchange(other.x, rows.x, bit);
            map_rows(rows, rows, other, f);
        }
    }

    FMHA_DEVICE static void store_element(char* to, std::uint32_t bits, ElementType type) {
        if (element_bits(type) == 32)
            *reinterpret_cast<std::uint32_t*>(to) = bits;
        else if (element_bits(type) == 16)
            *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(bits);
        else
            *reinterpret_cast<std::uint8_t*>(to) = static_cast<std::uint8_t>(bits);
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
