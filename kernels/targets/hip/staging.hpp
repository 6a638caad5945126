#pragma once

#include "kernels/programs/fmha_fwd.hpp"
#include "kernels/targets/hip/line_view.hpp"
#include "kernels/targets/hip/setup.hpp"

#include <bit>
#include <cstdint>

namespace fmha::hip_target {

/// The query tile of a block.
template <class Fragments>
struct QueryTile {
    Fragments fragments; ///< QueryPlace::registers
    TileView memory;     ///< QueryPlace::memory
};

/// What `load_transposed` and `load` deliver for the second operand: a place in LDS.
struct KeyStep {
    std::int32_t address = 0; ///< of the stage
    std::int32_t column0 = 0; ///< first element of the step in a line
};
struct ValueStep {
    std::int32_t address = 0;
    std::int32_t key0 = 0; ///< first key of the step in the stage
};

/// A copy from global memory to LDS through registers, in one go or in two halves with products between them.
enum class Phase : std::uint8_t { whole, read, write };

/// What one copy takes: the corner of a tile, the same for all steps through it so that they share one window of
/// `tile_lines` lines, and the place of the step in the tile.
struct Part {
    std::int64_t line0 = 0, element0 = 0;
    std::int32_t tile_lines = 0;
    std::int32_t line = 0, element = 0;
    std::int32_t lines = 0, elements = 0; ///< how many are copied
    Phase phase = Phase::whole;

    /// What cannot be read in whole units is not read ahead at all, and without a branch.
    FMHA_DEVICE TileView window(const LineView& from) const {
        TileView tile = from.window(line0, element0, tile_lines);
        if (phase == Phase::read) {
            if (tile.granule < 16) tile.line_bytes = tile.lines = 0;
            tile.granule = 16;
        }
        return tile;
    }
};

/// The block context's way from global memory to LDS. Tiles are copied line by line in units of 16 bytes, a
/// unit a thread.
template <class Machine, class Setup>
class Staging : public kernels::Decisions {
  public:
    FMHA_DEVICE Staging(Machine& machine, const Setup& setup)
        : machine_(machine), setup_(setup),
          ahead_(this->template registers<std::uint32_t, &BlockPlan::ahead_words>()),
          ahead_scales_(this->template registers<std::uint32_t, &BlockPlan::ahead_scales>()) {}

    FMHA_DEVICE decltype(auto) cfg() const { return setup_.cfg(); }
    FMHA_DEVICE decltype(auto) plan() const { return setup_.plan(); }

    FMHA_DEVICE void visit(const kernels::FwdItem&, std::int64_t) {
        stage_ ^= 1;
        started_ = true;
        more_keys_ = false;
    }

    FMHA_DEVICE KeyStep key() const { return {}; }
    FMHA_DEVICE ValueStep value() const { return {}; }

    FMHA_DEVICE void prefetch(const KeyStep&, const kernels::Matrix& matrix, std::int64_t key0,
                              std::int64_t col0) {
        if (plan().read_ahead) {
            keys_ = matrix;
            next_key0_ = key0;
            more_keys_ = true;
            if (!started_) copy_keys(matrix, 0, key0, 0, Phase::read);
        }
        if (!plan().async) return;
        const Tile& tile = cfg().algorithm.tile;
        copy_lines(plan().key, key_stage(stage_ ^ 1), LineView::of(matrix, plan().type_k),
                   {key0, col0, tile.n0, 0, 0, tile.n0, tile.k0max});
    }
    FMHA_DEVICE void prefetch(const ValueStep&, const kernels::Matrix& matrix, std::int64_t key0,
                              std::int64_t channel0) {
        values_ = matrix;
        channel0_ = channel0;
        if (!plan().async) return;
        copy_values(matrix, value_stage(stage_), key0, channel0, cfg().algorithm.tile.n0);
    }
    FMHA_DEVICE void commit() {
        if constexpr (Machine::has_async_copy)
            if (plan().async) machine_.commit_copies();
    }
    FMHA_DEVICE void wait(int groups) {
        if constexpr (Machine::has_async_copy)
            if (plan().async) {
                machine_.wait_copies(groups);
                machine_.barrier();
            }
    }

    FMHA_DEVICE void load_transposed(KeyStep& key, const kernels::Matrix& matrix, std::int64_t key0,
                                     std::int64_t col0) {
        const Tile& tile = cfg().algorithm.tile;
        if (plan().async) {
            key = {key_stage(stage_), static_cast<std::int32_t>(col0)};
            return;
        }
        key = {key_stage(next_buffer()), 0};
        const auto column = static_cast<std::int32_t>(col0);
        copy_keys(matrix, key.address, key0, column, plan().read_ahead ? Phase::write : Phase::whole);
        machine_.barrier();
        if (!plan().read_ahead) return;
        if (column + tile.k0 < tile.k0max)
            copy_keys(matrix, 0, key0, column + tile.k0, Phase::read);
        else
            copy_values(values_, 0, key0, channel0_, tile.k1, Phase::read);
    }
    FMHA_DEVICE void load(ValueStep& value, const kernels::Matrix& matrix, std::int64_t key0,
                          std::int64_t channel0) {
        const Tile& tile = cfg().algorithm.tile;
        if (plan().async) {
            value = {value_stage(stage_), key_in_tile(key0)};
            return;
        }
        value = {value_stage(next_buffer()), 0};
        copy_values(matrix, value.address, key0, channel0, tile.k1,
                    plan().read_ahead ? Phase::write : Phase::whole);
        machine_.barrier();
        if (!plan().read_ahead) return;
        if (key_in_tile(key0) + tile.k1 < tile.n0)
            copy_values(matrix, 0, key0 + tile.k1, channel0, tile.k1, Phase::read);
        else if (more_keys_)
            copy_keys(keys_, 0, next_key0_, 0, Phase::read);
    }

  protected:
    Machine& machine_; // NOLINT(*-non-private-member-variables-in-classes,*-avoid-const-or-ref-data-members)
    Setup setup_;      // NOLINT(*-non-private-member-variables-in-classes)

    template <class T, auto Count>
    FMHA_DEVICE auto registers() const {
        return setup_.template registers<Machine, T, Count>(machine_);
    }

    /// Copies one step of hdim_q of all keys of a tile.
    FMHA_DEVICE void copy_keys(const kernels::Matrix& matrix, int address, std::int64_t key0,
                               std::int32_t column, Phase phase) {
        const Tile& tile = cfg().algorithm.tile;
        copy_lines(plan().key, address, LineView::of(matrix, plan().type_k),
                   {key0, 0, tile.n0, 0, units(plan().type_k, column), tile.n0, units(plan().type_k, tile.k0),
                    phase});
        copy_scales(plan().key, address, matrix, false,
                    {key0, 0, tile.n0, 0, column / block_of_scales, tile.n0, plan().key_blocks, phase});
    }

    /// Copies `part` line by line to `address`; through registers where it cannot be copied in units of 16 bytes.
    FMHA_DEVICE void copy_lines(const Image& image, int address, const LineView& from, const Part& part) {
        const int unit = 16 / from.element_size, per_line = part.elements / unit;
        if constexpr (Machine::has_async_copy)
            if (plan().async) {
                if (from.aligned)
                    copy_lines_async(image, address, from, part.line0 + part.line,
                                     part.element0 + part.element, part.lines, per_line, unit);
                else
                    gather_lines(image, address, part.window(from), part, per_line, unit);
                return;
            }
        const TileView tile = part.window(from);
        copy_units<4>(
            tile, part.phase, part.lines * per_line,
            [&](int thread, int index) {
                return tile.read<4>(machine_, thread, part.line + index / per_line,
                                    part.element + index % per_line * unit);
            },
            [&](int thread, int index, const Words<4>& words) {
                const int to = address + index / per_line * image.line_bytes + index % per_line * 16;
                machine_.template lds_write<4>(thread, to, words.word);
            });
    }

    /// Copies `keys` keys of V with all channels of the block into the layout that the plan asks for.
    FMHA_DEVICE void copy_values(const kernels::Matrix& matrix, int address, std::int64_t key0,
                                 std::int64_t channel0, int keys, Phase phase = Phase::whole) {
        const ElementType type = plan().type_v;
        const Tile& tile = cfg().algorithm.tile;
        const std::int32_t step = key_in_tile(key0);
        if (cfg().signature.v_layout == VLayout::column) {
            const LineView from = LineView::of(matrix, type, true);
            const Part part{channel0,          storage_units(type, key0 - step),
                            tile.n1,           0,
                            units(type, step), tile.n1,
                            units(type, keys), phase};
            if (plan().place_run() * element_bits(type) >= 128)
                copy_lines(plan().value, address, from, part);
            else
                scatter_lines(address, from, part);
            copy_scales(plan().value, address, matrix, true,
                        {channel0, (key0 - step) / block_of_scales, tile.n1, 0, step / block_of_scales,
                         tile.n1, plan().value_blocks, phase});
            return;
        }
        const LineView from = LineView::of(matrix, type);
        const Part part{key0 - step, channel0, tile.n0, step, 0, keys, tile.n1, phase};
        if (plan().value_by_channel)
            transpose_lines(address, from, part);
        else
            copy_lines(plan().value, address, from, part);
    }

    static constexpr int block_of_scales = 32; ///< elements that share a scale (Q-5)

    FMHA_DEVICE static std::int32_t units(ElementType type, std::int32_t elements) {
        return static_cast<std::int32_t>(storage_units(type, elements));
    }

    /// Copies the scales of a step for scaled instructions: a word of them goes behind the elements of each line. The few
    /// bytes of a line lie anywhere, and are read one by one.
    FMHA_DEVICE void copy_scales(const Image& image, int address, const kernels::Matrix& matrix,
                                 bool by_column, const Part& part) {
        if (plan().first.scale_block == 0) return;
        const TileView tile = LineView::of(matrix.block_scales(), ElementType::e8m0, by_column)
                                  .window(part.line0, part.element0, part.tile_lines);
        machine_.each([&](int thread) {
            const int here = machine_.local(thread);
            FMHA_UNROLL
            for (int i = 0; i < plan().ahead_scales; ++i) {
                const int line = here + i * plan().threads;
                if (part.phase != Phase::write) {
                    std::uint32_t scales = 0;
                    FMHA_UNROLL
                    for (int block = 0; block < part.elements; ++block)
                        scales |= tile.read_byte(machine_, thread, part.line + line, part.element + block)
                                  << static_cast<unsigned>(8 * block);
                    ahead_scales_.at(thread, i) = scales;
                }
                if (part.phase == Phase::read || line >= part.lines) continue;
                const std::uint32_t scales = ahead_scales_.at(thread, i);
                machine_.template lds_write<1>(thread, address + line * image.line_bytes + image.scales(),
                                               &scales);
            }
        });
    }

  private:
    int stage_ = 1; ///< of the key tile that is being worked on; `visit` turns to the next
    int buffer_ = 0;
    // Reading ahead: the units of the next step, and where the steps after the tile's last ones come from.
    RegistersOf<Machine, Setup, std::uint32_t, &BlockPlan::ahead_words> ahead_;
    RegistersOf<Machine, Setup, std::uint32_t, &BlockPlan::ahead_scales> ahead_scales_;
    kernels::Matrix keys_, values_;
    std::int64_t next_key0_ = 0, channel0_ = 0;
    bool started_ = false, more_keys_ = false;

    FMHA_DEVICE std::int32_t key_in_tile(std::int64_t key) const {
        return static_cast<std::int32_t>(static_cast<std::uint64_t>(key) %
                                         static_cast<std::uint64_t>(cfg().algorithm.tile.n0));
    }

    FMHA_DEVICE int key_stage(int stage) const { return plan().key.offset + stage * plan().key_stage; }
    FMHA_DEVICE int value_stage(int stage) const { return plan().value.offset + stage * plan().value_stage; }

    /// The buffer for the next step. With two, the barrier after the copy into the other one has already seen
    /// every wave leave this one; with one, that takes a barrier of its own.
    FMHA_DEVICE int next_buffer() {
        if (plan().key_stage == 0) {
            machine_.barrier();
            return 0;
        }
        return buffer_ ^= 1;
    }

    /// Where lines divide among the threads, a thread keeps its column and goes down the lines, so that it needs one
    /// address for all of its units.
    FMHA_DEVICE void copy_lines_async(const Image& image, int address, const LineView& from,
                                      std::int64_t line0, std::int64_t element0, int lines, int per_line,
                                      int unit) {
        const int threads = plan().threads, step = threads / per_line;
        machine_.each([&](int thread) {
            if (threads % per_line != 0) {
                FMHA_UNROLL
                for (int first = 0; first < lines * per_line; first += threads) {
                    const int index = first + thread, line = index / per_line, column = index % per_line;
                    if (lines * per_line % threads != 0 && index >= lines * per_line) continue;
                    const int present = from.existing(line0 + line, element0 + column * unit, unit);
                    machine_.copy_async(thread, address + line * image.line_bytes + column * 16,
                                        from.at(line0 + line, element0 + column * unit),
                                        present * from.element_size);
                }
                return;
            }
            const int line = thread / per_line, column = thread % per_line;
            const std::int64_t element = element0 + column * unit;
            const int bytes = from.existing(0, element, unit) * from.element_size;
            const std::int64_t below = from.lines - line0 - line;
            const int existing = bytes == 0 || below < 0 ? 0
                                 : below < lines         ? static_cast<int>(below)
                                                         : lines;
            const char* source = from.at(line0 + line, element);
            int to = address + line * image.line_bytes + column * 16;
            FMHA_UNROLL
            for (int down = 0; down < lines; down += step) {
                if (lines % step != 0 && line + down >= lines) continue;
                machine_.copy_async(thread, to, source, down < existing ? bytes : 0);
                source += step * from.line_bytes;
                to += step * image.line_bytes;
            }
        });
    }

    /// What cannot be copied in units of 16 bytes, element by element: rare, and small, because it stands in the loop
    /// over keys beside the copies that are not.
    FMHA_DEVICE void gather_lines(const Image& image, int address, const TileView& tile, const Part& part,
                                  int per_line, int unit) {
        machine_.each([&](int thread) {
            FMHA_NO_UNROLL
            for (int index = machine_.local(thread); index < part.lines * per_line; index += plan().threads) {
                const int line = index / per_line, column = index % per_line;
                Words<4> words{};
                tile.gather(part.line + line, part.element + column * unit, words);
                machine_.template lds_write<4>(thread, address + line * image.line_bytes + column * 16,
                                               words.word);
            }
        });
    }

    /// write(thread, index, read(thread, index)) for `total` indices, dealt out to the threads. `together` reads of a
    /// thread are under way at a time, or all of them from one phase to the other; but what has to be read element by
    /// element is so in the second.
    template <int together, class Read, class Write>
    FMHA_DEVICE void copy_units(const TileView& tile, Phase phase, int total, Read read, Write write) {
        using Unit = decltype(read(0, 0));
        constexpr int words = sizeof(Unit) / sizeof(std::uint32_t);
        const int threads = plan().threads, rounds = (total + threads - 1) / threads;
        machine_.each([&](int thread) {
            const int here = machine_.local(thread);
            if (tile.granule < 16) {
                FMHA_NO_UNROLL
                for (int index = here; index < total; index += threads)
                    write(thread, index, read(thread, index));
                return;
            }
            if (phase == Phase::read) {
                FMHA_UNROLL
                for (int i = 0; i < rounds; ++i) keep(thread, i * words, read(thread, here + i * threads));
                return;
            }
            if (phase == Phase::write) {
                FMHA_UNROLL
                for (int i = 0; i < rounds; ++i)
                    if (total % threads == 0 || here + i * threads < total)
                        write(thread, here + i * threads, ahead<Unit>(thread, i * words));
                return;
            }
            FMHA_UNROLL
            for (int first = 0; first < rounds; first += together) {
                Unit units[static_cast<unsigned>(together)];
                FMHA_UNROLL
                for (int i = 0; i < together; ++i)
                    if (first + i < rounds) units[i] = read(thread, here + (first + i) * threads);
                FMHA_UNROLL
                for (int i = 0; i < together; ++i) {
                    const int index = here + (first + i) * threads;
                    if (first + i < rounds && (total % threads == 0 || index < total))
                        write(thread, index, units[i]);
                }
            }
        });
    }
    template <class Unit>
    FMHA_DEVICE void keep(int thread, int r0, const Unit& unit) {
        const auto raw = std::bit_cast<Words<sizeof(Unit) / 4, 4>>(unit);
        FMHA_UNROLL
        for (int w = 0; w < static_cast<int>(sizeof(Unit) / 4); ++w) ahead_.at(thread, r0 + w) = raw.word[w];
    }
    template <class Unit>
    FMHA_DEVICE Unit ahead(int thread, int r0) const {
        Words<sizeof(Unit) / 4, 4> raw;
        FMHA_UNROLL
        for (int w = 0; w < static_cast<int>(sizeof(Unit) / 4); ++w) raw.word[w] = ahead_.at(thread, r0 + w);
        return std::bit_cast<Unit>(raw);
    }

    /// V stored by channel: a unit of consecutive keys goes to several places in its line; but with 4 bits it is a block
    /// of keys, which stay together.
    FMHA_DEVICE void scatter_lines(int address, const LineView& from, const Part& part) {
        const int unit = 16 / from.element_size, per_line = part.elements / unit;
        const TileView tile = part.window(from);
        copy_units<4>(
            tile, part.phase, part.lines * per_line,
            [&](int thread, int index) {
                return tile.read<4>(machine_, thread, part.line + index / per_line,
                                    part.element + index % per_line * unit);
            },
            [&](int thread, int index, const Words<4>& words) {
                const int key = index % per_line * unit;
                const int to = address + index / per_line * plan().value.line_bytes;
                if (element_bits(plan().type_v) == 4) {
                    const Words<4> placed = in_places(words);
                    machine_.template lds_write<4>(thread, to + plan().place_of_key(2 * key) / 2,
                                                   placed.word);
                    return;
                }
                FMHA_UNROLL
                for (int w = 0; w < 4; w += patch_words())
                    write_patch(thread,
                                to + plan().place_of_key(key + w * 4 / from.element_size) * from.element_size,
                                words.word + w);
            });
    }

    /// V stored by key: patches of four keys times 16 bytes of channels are transposed in registers. Neighbouring
    /// threads have neighbouring keys, so that their writes fall on different banks.
    FMHA_DEVICE void transpose_lines(int address, const LineView& from, const Part& part) {
        struct Patch {
            Words<4> line[4];
        };
        const int size = from.element_size, unit = 16 / size, patches = part.lines / 4;
        const unsigned bits = 8U * static_cast<unsigned>(size), mask = (1U << (bits % 32U)) - 1U;
        const TileView tile = part.window(from);
        copy_units<1>(
            tile, part.phase, patches * (part.elements / unit),
            [&](int thread, int index) {
                Patch patch;
                FMHA_UNROLL
                for (int k = 0; k < 4; ++k)
                    patch.line[k] = tile.read<4>(machine_, thread, part.line + index % patches * 4 + k,
                                                 part.element + index / patches * unit);
                return patch;
            },
            [&](int thread, int index, const Patch& patch) {
                const int to = address + index / patches * unit * plan().value.line_bytes +
                               plan().place_of_key(index % patches * 4) * size;
                FMHA_UNROLL
                for (int c = 0; c < unit; ++c) {
                    const unsigned shift = static_cast<unsigned>(c) * bits % 32U;
                    const int word = c * size / 4;
                    const auto element = [&](int k) { return patch.line[k].word[word] >> shift & mask; };
                    std::uint32_t words[2] = {};
                    if (size == 1) {
                        words[0] = element(0) | element(1) << 8U | element(2) << 16U | element(3) << 24U;
                    } else {
                        words[0] = element(0) | element(1) << 16U;
                        words[1] = element(2) | element(3) << 16U;
                    }
                    write_patch(thread, to + c * plan().value.line_bytes, words);
                }
            });
    }

    /// 32 keys of 4 bits in the order of their places: four neighbours are half a word.
    FMHA_DEVICE Words<4> in_places(const Words<4>& keys) const {
        Words<4> out{};
        FMHA_UNROLL
        for (int half = 0; half < 8; ++half) {
            const std::uint32_t four = keys.word[half / 2] >> static_cast<unsigned>(half % 2 * 16) & 0xFFFFU;
            const int place = plan().place_of_key(4 * half) / 4;
            out.word[place / 2] |= four << static_cast<unsigned>(place % 2 * 16);
        }
        return out;
    }

    /// Words of four elements of V.
    FMHA_DEVICE int patch_words() const { return element_bits(plan().type_v) / 8; }
    FMHA_DEVICE void write_patch(int thread, int address, const std::uint32_t* words) {
        if (patch_words() == 1)
            machine_.template lds_write<1>(thread, address, words);
        else if (patch_words() == 2)
            machine_.template lds_write<2>(thread, address, words);
        else
            machine_.template lds_write<4>(thread, address, words);
    }
};

} // namespace fmha::hip_target
