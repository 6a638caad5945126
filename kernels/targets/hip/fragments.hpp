#pragma once

#include "kernels/targets/hip/staging.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Accumulators of the first product, m0 × n0, and of the second, m0 × n1; weights as operand fragments.
template <class Registers>
struct ScoreTile {
    Registers x;
    FMHA_DEVICE static const ProductPlan& product(const BlockPlan& plan) { return plan.first; }
    FMHA_DEVICE static int column_tiles(const BlockPlan& plan) { return plan.key_tiles; }
};
template <class Registers>
struct OutputTile {
    Registers x;
    FMHA_DEVICE static const ProductPlan& product(const BlockPlan& plan) { return plan.second; }
    FMHA_DEVICE static int column_tiles(const BlockPlan& plan) { return plan.channel_tiles; }
};
template <class Registers>
struct WeightTile {
    Registers x;
};

/// Operand fragments from LDS or registers, and the two products.
template <class Machine, class Setup>
class Products : public Staging<Machine, Setup> {
  protected:
    using Base = Staging<Machine, Setup>;
    using Base::machine_;
    using Query = QueryTile<RegistersOf<Machine, Setup, std::uint32_t, &BlockPlan::query_words>>;

  public:
    using Base::Base;
    using Base::cfg;
    using Base::load;
    using Base::plan;

    FMHA_DEVICE auto query() const {
        return Query{this->template registers<std::uint32_t, &BlockPlan::query_words>(), {}};
    }

    /// A GPU works on the whole capacity, because registers need constant numbers; what does not exist is 0.
    FMHA_DEVICE int steps(std::int64_t capacity, std::int64_t, std::int64_t step) const {
        return static_cast<int>(capacity / step);
    }

    FMHA_DEVICE void load(Query& query, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0) {
        const Tile& tile = cfg().algorithm.tile;
        const LineView from = LineView::of(matrix, plan().type_q);
        const std::int64_t first = storage_units(plan().type_q, col0);
        query.memory = from.window(row0, first, tile.m0);
        if (plan().query_place == QueryPlace::lds)
            this->copy_lines(plan().query, plan().query.offset, from,
                             {row0, first, tile.m0, 0, 0, tile.m0, Base::units(plan().type_q, tile.k0max)});
        if (plan().query_place != QueryPlace::registers) return;
        const int fragments = tile.k0max / plan().first.depth;
        machine_.each([&](int thread) {
            FMHA_UNROLL
            for (int tile_row = 0; tile_row < plan().row_tiles; ++tile_row) {
                FMHA_UNROLL
                for (int fragment = 0; fragment < fragments; ++fragment)
                    read_query(thread, query, tile_row, fragment, query.fragments,
                               (tile_row * fragments + fragment) * plan().first.left_fragment);
            }
            read_query_scales(thread, matrix, row0, col0, query.fragments);
            FMHA_UNROLL
            for (int w = 0; w < plan().query_words; ++w)
                query.fragments.at(thread, w) = machine_.arrived(query.fragments.at(thread, w));
        });
    }

    template <class Scores>
    FMHA_DEVICE void product(ScoreTile<Scores>& acc, Query& query, int first, const KeyStep& key) {
        const ProductPlan& p = plan().first;
        const Tile& tile = cfg().algorithm.tile;
        const int pair = plan().load_matrix ? 32 / p.depth : 1; // column tiles that one read delivers
        const bool in_registers = plan().query_place == QueryPlace::registers;
        auto left = this->template registers<std::uint32_t, &BlockPlan::left_words>();
        auto right = this->template registers<std::uint32_t, &BlockPlan::right_words>();
        const auto reader = readers(plan().key);
        FMHA_UNROLL
        for (int step = 0; step < tile.k0 / p.depth; ++step) {
            const int fragment = first / p.depth + step;
            if (!in_registers) {
                FMHA_UNROLL
                for (int row = 0; row < plan().row_tiles; ++row) load_query(query, row, fragment, left);
            }
            FMHA_UNROLL
            for (int col = 0; col < plan().key_tiles; col += pair) {
                load_key(key, col, step, reader, right);
                FMHA_UNROLL
                for (int half = 0; half < pair; ++half) {
                    FMHA_UNROLL
                    for (int row = 0; row < plan().row_tiles; ++row) {
                        const int to = (row * plan().key_tiles + col + half) * p.acc_registers;
                        if (in_registers)
                            multiply(p, acc.x, to, query.fragments,
                                     (row * (tile.k0max / p.depth) + fragment) * p.left_fragment, right,
                                     half * p.right_fragment);
                        else
                            multiply(p, acc.x, to, left, row * p.left_fragment, right,
                                     half * p.right_fragment);
                    }
                }
            }
        }
    }

    template <class Output, class Weights>
    FMHA_DEVICE void product(OutputTile<Output>& acc, WeightTile<Weights>& weights, int first,
                             const ValueStep& value, float factor) {
        const ProductPlan& p = plan().second;
        const int pair = plan().load_matrix ? 32 / p.depth : 1;
        const int steps = cfg().algorithm.tile.k1 / p.depth, fragments = cfg().algorithm.tile.n0 / p.depth;
        const auto left = [&](int row, int step) {
            return (row * fragments + first / p.depth + step) * p.left_fragment;
        };
        auto right = this->template registers<std::uint32_t, &BlockPlan::right_words>();
        const auto reader = readers(plan().value);
        if (cfg().signature.qscale == QScale::blockscale) {
            auto part = this->template registers<float, &BlockPlan::part_registers>();
            FMHA_UNROLL
            for (int col = 0; col < plan().channel_tiles; ++col) {
                FMHA_UNROLL
                for (int row = 0; row < plan().row_tiles; ++row) {
                    const int to = (row * plan().channel_tiles + col) * p.acc_registers;
                    machine_.each([&](int thread) {
                        FMHA_UNROLL
                        for (int r = 0; r < p.acc_registers; ++r) part.at(thread, r) = 0.0F;
                    });
                    FMHA_UNROLL
                    for (int step = 0; step < steps; ++step) {
                        load_value(value, col, step, reader, right);
                        multiply(p, part, 0, weights.x, left(row, step), right, 0);
                    }
                    machine_.each([&](int thread) {
                        FMHA_UNROLL
                        for (int r = 0; r < p.acc_registers; ++r)
                            acc.x.at(thread, to + r) =
                                machine_.settled(acc.x.at(thread, to + r) + factor * part.at(thread, r));
                    });
                }
            }
            return;
        }
        FMHA_UNROLL
        for (int step = 0; step < steps; ++step) {
            FMHA_UNROLL
            for (int col = 0; col < plan().channel_tiles; col += pair) {
                load_value(value, col, step, reader, right);
                FMHA_UNROLL
                for (int half = 0; half < pair; ++half) {
                    FMHA_UNROLL
                    for (int row = 0; row < plan().row_tiles; ++row)
                        multiply(p, acc.x, (row * plan().channel_tiles + col + half) * p.acc_registers,
                                 weights.x, left(row, step), right, half * p.right_fragment);
                }
            }
        }
    }

  protected:
    FMHA_DEVICE int lane(int thread) const { return thread % plan().wave_size; }
    FMHA_DEVICE int wave_row(int thread) const { return thread / plan().wave_size * plan().wave_rows; }

  private:
    template <class Acc, class Left, class Right>
    FMHA_DEVICE void multiply(const ProductPlan& p, Acc& acc, int c0, Left& left, int l0, Right& right,
                              int r0) {
        FMHA_UNROLL
        for (int part = 0; part < p.parts; ++part) {
            const int l = l0 + part * (p.left_words / p.parts), r = r0 + part * (p.right_words / p.parts);
            if (plan().transposed)
                machine_.mma(p.instruction, acc, c0, right, r, left, l);
            else
                machine_.mma(p.instruction, acc, c0, left, l, right, r);
        }
    }

    /// `words` words of a line of the image at `base`, from `byte` on, in the widest reads that their number allows.
    template <class Registers>
    FMHA_DEVICE void read_words(int thread, int base, const Image& image, int line, int byte, int words,
                                Registers& out, int r0) {
        const auto address = [&](int w) { return base + image.at(line, byte + 4 * w); };
        if (words % 4 == 0) {
            FMHA_UNROLL
            for (int w = 0; w < words; w += 4) read_some<4>(thread, address(w), out, r0 + w);
        } else if (words % 2 == 0) {
            FMHA_UNROLL
            for (int w = 0; w < words; w += 2) read_some<2>(thread, address(w), out, r0 + w);
        } else {
            FMHA_UNROLL
            for (int w = 0; w < words; ++w) read_some<1>(thread, address(w), out, r0 + w);
        }
    }
    template <int count, class Registers>
    FMHA_DEVICE void read_some(int thread, int address, Registers& out, int r0) {
        std::uint32_t words[static_cast<unsigned>(count)];
        machine_.template lds_read<count>(thread, address, words);
        FMHA_UNROLL
        for (int w = 0; w < count; ++w) out.at(thread, r0 + w) = operand(words[w]);
    }
    /// fp32 operands may need a rounding of their own.
    FMHA_DEVICE std::uint32_t operand(std::uint32_t word) const {
        return element_bits(plan().type_k) == 32 ? machine_.round_operand(word) : word;
    }

    /// Left fragment `fragment` of row tile `row` from global memory.
    template <class Registers>
    FMHA_DEVICE void read_query(int thread, const Query& query, int row, int fragment, Registers& out,
                                int r0) {
        const ProductPlan& p = plan().first;
        const int line = wave_row(thread) + row * p.rows + p.left_outer.of_lane(lane(thread));
        const auto read = [&]<int count>(Words<count>, int w) {
            const int element =
                fragment * p.depth + p.left_k.at(lane(thread), w * 32 / element_bits(plan().type_q));
            const auto words = query.memory.template read<count>(machine_, thread, line,
                                                                 Base::units(plan().type_q, element));
            FMHA_UNROLL
            for (int i = 0; i < count; ++i) out.at(thread, r0 + w + i) = operand(words.word[i]);
        };
        FMHA_UNROLL
        for (int w = 0; w < p.left_words; w += p.left_words % 4 == 0 ? 4 : p.left_words) {
            if (p.left_words % 4 == 0)
                read(Words<4>{}, w);
            else if (p.left_words == 2)
                read(Words<2>{}, w);
            else
                read(Words<1>{}, w);
        }
    }

    /// The scale of every query fragment, behind its words.
    template <class Registers>
    FMHA_DEVICE void read_query_scales(int thread, const kernels::Matrix& matrix, std::int64_t row0,
                                       std::int64_t col0, Registers& out) {
        const ProductPlan& p = plan().first;
        if (p.scale_block == 0) return;
        const Tile& tile = cfg().algorithm.tile;
        const TileView from = LineView::of(matrix.block_scales(), ElementType::e8m0)
                                  .window(row0, col0 / Base::block_of_scales, tile.m0);
        const int fragments = tile.k0max / p.depth, l = lane(thread);
        FMHA_UNROLL
        for (int i = 0; i < plan().row_tiles * fragments; ++i) {
            const int line = wave_row(thread) + i / fragments * p.rows + p.left_scale.outer.of_lane(l);
            const int block = (i % fragments * p.depth + p.left_scale.k.of_lane(l)) / p.scale_block;
            out.at(thread, i * p.left_fragment + p.left_words) =
                from.read_byte(machine_, thread, line, block);
        }
    }

    FMHA_DEVICE void load_query(const Query& query, int row, int fragment, auto& out) {
        const ProductPlan& p = plan().first;
        const Image& image = plan().query;
        const int r0 = row * p.left_fragment;
        if (plan().query_place == QueryPlace::memory) {
            machine_.each(
                [&](int thread) { read_query(machine_.local(thread), query, row, fragment, out, r0); });
            return;
        }
        if constexpr (Machine::has_load_matrix)
            if (plan().load_matrix && p.depth == 16) {
                const auto address = [&](int thread) {
                    const int l = lane(thread);
                    return image.offset + (wave_row(thread) + row * p.rows + l % 16) * image.line_bytes +
                           (fragment * 16 + l / 16 * 8) * 2;
                };
                machine_.load_matrix(out, r0, address, false);
                return;
            }
        const int bits = element_bits(plan().type_q), run = p.left_run() * bits / 32;
        machine_.each([&](int thread) {
            const int l = lane(thread);
            FMHA_UNROLL
            for (int w = 0; w < p.left_words; w += run) {
                const int e = w * 32 / bits;
                const int line = wave_row(thread) + row * p.rows + p.left_outer.at(l, e);
                read_words(thread, image.offset, image, line,
                           (fragment * p.depth + p.left_k.at(l, e)) * bits / 8, run, out, r0 + w);
            }
        });
    }

    /// A thread's number, for the addresses of its reads of a product. Where lines are swizzled there are several, too
    /// many to keep over all products.
    FMHA_DEVICE auto readers(const Image& image) const {
        auto reader = this->template registers<int, 1>();
        machine_.each([&](int thread) {
            reader.at(thread, 0) = image.swizzle_mask != 0 ? machine_.local(thread) : thread;
        });
        return reader;
    }

    /// Right fragments of the first product, column tile `col` (and those that come with it).
    FMHA_DEVICE void load_key(const KeyStep& key, int col, int step, const auto& reader, auto& out) {
        const ProductPlan& p = plan().first;
        const Image& image = plan().key;
        const int column = key.column0 + step * p.depth;
        if constexpr (Machine::has_load_matrix)
            if (plan().load_matrix) {
                load_matrices(key.address, image, col, column, p.depth, false, out);
                return;
            }
        const int bits = element_bits(plan().type_k), run = p.right_run() * bits / 32;
        machine_.each([&](int thread) {
            const int l = lane(reader.at(thread, 0));
            FMHA_UNROLL
            for (int w = 0; w < p.right_words; w += run)
                read_words(thread, key.address, image, col * p.cols + p.right_outer.of_lane(l),
                           (column + p.right_k.at(l, w * 32 / bits)) * bits / 8, run, out, w);
        });
        load_scales(p, image, key.address, col, column, out);
    }

    FMHA_DEVICE void load_value(const ValueStep& value, int col, int step, const auto& reader, auto& out) {
        const ProductPlan& p = plan().second;
        const Image& image = plan().value;
        const int key = value.key0 + step * p.depth;
        if constexpr (Machine::has_load_matrix)
            if (plan().load_matrix) {
                load_matrices(value.address, image, col, key, p.depth, !plan().value_by_channel, out);
                return;
            }
        const int bits = element_bits(plan().type_v);
        if constexpr (Machine::has_transposing_read)
            if (plan().reads_transposed) {
                const int rows = transposing_read(plan().type_v).rows;
                FMHA_UNROLL
                for (int e = 0; e < p.right_elements; e += rows)
                    machine_.read_transposed(out, e * bits / 32, plan().type_v, [&](int thread) {
                        const int l = lane(reader.at(thread, 0));
                        return value.address +
                               image.at(key + plan().value_key[e] + plan().read_key.of_lane(l),
                                        (col * p.cols + plan().read_channel.of_lane(l)) * bits / 8);
                    });
                return;
            }
        machine_.each([&](int thread) {
            const int l = lane(reader.at(thread, 0));
            const int channel = col * p.cols + p.right_outer.of_lane(l);
            if (plan().value_by_channel) {
                const int place = plan().place_of_key(key + plan().value_key_lane.of_lane(l));
                read_words(thread, value.address, image, channel, place * bits / 8, p.right_words, out, 0);
                return;
            }
            FMHA_UNROLL
            for (int e = 0; e < p.right_elements; ++e) // fp32: an element is a word
                read_some<1>(thread,
                             value.address +
                                 image.at(key + plan().value_key[e] + plan().value_key_lane.of_lane(l),
                                          channel * bits / 8),
                             out, e);
        });
        load_scales(p, image, value.address, col, key, out);
    }

    /// The scales of a right fragment, from behind the elements of its lines to behind the fragment's words.
    FMHA_DEVICE void load_scales(const ProductPlan& p, const Image& image, int address, int col, int k0,
                                 auto& out) {
        if (p.scale_block == 0) return;
        machine_.each([&](int thread) {
            const int line = col * p.cols + p.right_scale.outer.of_lane(lane(thread));
            const int block = (k0 + p.right_scale.k.of_lane(lane(thread))) / p.scale_block;
            out.at(thread, p.right_words) =
                machine_.lds_read_byte(thread, address + line * image.line_bytes + image.scales() + block);
        });
    }

    /// Four 8 × 8 matrices of 16-bit elements: as many column tiles as they hold of depth `depth`. A line of the
    /// image is a column of the product, or, `across`, an element of its depth.
    FMHA_DEVICE void load_matrices(int base, const Image& image, int col, int k0, int depth, bool across,
                                   auto& out) {
        const int halves = depth / 8;
        machine_.load_matrix(
            out, 0,
            [&](int thread) {
                const int l = lane(thread), matrix = l / 8;
                const int column = (col + matrix / halves) * 8, k = k0 + matrix % halves * 8;
                return across ? base + (k + l % 8) * image.line_bytes + column * 2
                              : base + (column + l % 8) * image.line_bytes + k * 2;
            },
            across);
    }
};

} // namespace fmha::hip_target
