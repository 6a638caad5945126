#pragma once

#include "kernels/targets/hip/register_copies.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// The ways of a tile, or of a step of one, from global memory to LDS.
template <class Machine, class Setup>
class TileCopies : public RegisterCopies<Machine, Setup> {
    using Base = RegisterCopies<Machine, Setup>;

  public:
    using Base::Base;
    using Base::cfg;
    using Base::plan;

  protected:
    using Base::block_of_scales;
    using Base::machine_;
    using Base::units;

    /// Copies one step of hdim_q of all keys of a tile.
    FMHA_DEVICE void copy_keys(const kernels::Matrix& matrix, int address, std::int64_t key0,
                               std::int32_t column, Phase phase) {
        const Tile& tile = cfg().algorithm.tile;
        const LineView from = LineView::of(matrix, plan().type_k);
        const ElementType type = plan().type_k;
        const Part part{key0, 0, tile.n0, 0, units(type, column), tile.n0, units(type, tile.k0), phase};
        if (phase == Phase::direct) {
            copy_direct(plan().key, plan().key_words, address, from, part, false);
            return;
        }
        copy_lines(plan().key, address, from, part);
        this->copy_scales(plan().key, address, matrix, false,
                          {key0, 0, tile.n0, 0, column / block_of_scales, tile.n0, plan().key_blocks, phase});
    }

    /// Copies `keys` keys of V with all channels of the block into the layout that the plan asks for.
    FMHA_DEVICE void copy_values(const kernels::Matrix& matrix, int address, std::int64_t key0,
                                 std::int64_t channel0, int keys, Phase phase = Phase::whole) {
        const ElementType type = plan().type_v;
        const Tile& tile = cfg().algorithm.tile;
        const std::int32_t step = this->key_in_tile(key0);
        const bool by_column = cfg().signature.v_layout == VLayout::column;
        const LineView from = LineView::of(matrix, type, by_column);
        if (!by_column) {
            const Part part{key0 - step, channel0, tile.n0, step, 0, keys, tile.n1, phase};
            if (phase == Phase::direct)
                copy_direct(plan().value, plan().value_words, address, from, part, false);
            else if (plan().value_by_channel)
                this->transpose_lines(address, from, part);
            else
                copy_lines(plan().value, address, from, part);
            return;
        }
        const Part part{channel0,          storage_units(type, key0 - step),
                        tile.n1,           0,
                        units(type, step), tile.n1,
                        units(type, keys), phase};
        if (phase == Phase::direct) {
            copy_direct(plan().value, plan().value_words, address, from, part, true);
            return;
        }
        if (plan().place_run() * element_bits(type) >= 128)
            copy_lines(plan().value, address, from, part);
        else
            this->scatter_lines(address, from, part);
        this->copy_scales(plan().value, address, matrix, true,
                          {channel0, (key0 - step) / block_of_scales, tile.n1, 0, step / block_of_scales,
                           tile.n1, plan().value_blocks, phase});
    }

    /// Copies `part` line by line to `address`; through registers where it cannot be copied in units of 16 bytes.
    FMHA_DEVICE void copy_lines(const Image& image, int address, const LineView& from, const Part& part) {
        if constexpr (Machine::has_tile_copies)
            if (plan().async == AsyncCopies::tiles) {
                const int unit = 16 / from.element_size;
                if (from.aligned)
                    copy_lines_async(image, address, from, part.line0 + part.line,
                                     part.element0 + part.element, part.lines, part.elements / unit, unit);
                else
                    this->template gather_lines<4>(image, address, part.window(from), part, false);
                return;
            }
        this->move_lines(image, address, from, part);
    }

  private:
    /// Starts to copy `part` straight to LDS, in units of `words` words; what is not aligned for that goes through
    /// registers at once. `by_place`: lines are channels of V, whose keys have places of their own.
    FMHA_DEVICE void copy_direct(const Image& image, int words, int address, const LineView& from,
                                 const Part& part, bool by_place) {
        const TileView tile = part.window(from);
        if constexpr (Machine::has_step_copies) {
            if (words == 4 && tile.granule >= 16) {
                copy_consecutive<4>(image, address, tile, part, by_place);
                return;
            }
            if (words == 1 && tile.granule >= 4) {
                copy_consecutive<1>(image, address, tile, part, by_place);
                return;
            }
        }
        const int patch = by_place ? this->patch_words() : 4;
        if (patch == 4)
            this->template gather_lines<4>(image, address, tile, part, by_place);
        else if (patch == 2)
            this->template gather_lines<2>(image, address, tile, part, by_place);
        else
            this->template gather_lines<1>(image, address, tile, part, by_place);
    }

    /// Consecutive units of the image are the threads': each of them finds out what belongs into its own.
    template <int words>
    FMHA_DEVICE void copy_consecutive(const Image& image, int address, const TileView& tile, const Part& part,
                                      bool by_place) {
        constexpr int unit = 4 * words;
        const int down = plan().threads * unit / image.line_bytes, size = tile.element_size;
        const int line_bytes = static_cast<int>(tile.line_bytes);
        machine_.each([&](int thread) {
            const int here = machine_.local(thread);
            const int line = here * unit / image.line_bytes;
            const int byte = here * unit % image.line_bytes ^ image.swizzle(line);
            const int first = (part.line + line) * line_bytes;
            FMHA_UNROLL
            for (int lines = 0; lines < part.lines; lines += down) {
                if (part.lines % down != 0 && line + lines >= part.lines) continue;
                const int place = (byte ^ image.swizzle(lines)) / size;
                const int element = part.element + (by_place ? plan().key_at_place(place) : place);
                const bool exists = part.line + line + lines < tile.lines && element < tile.elements;
                machine_.template copy_async<words>(
                    thread, address + lines * image.line_bytes + thread * unit, tile.data,
                    first + lines * line_bytes + element * size, exists ? unit : 0);
            }
        });
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
                    machine_.template copy_async<4>(thread, address + line * image.line_bytes + column * 16,
                                                    from.at(line0 + line, element0 + column * unit), 0,
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
                machine_.template copy_async<4>(thread, to, source, 0, down < existing ? bytes : 0);
                source += step * from.line_bytes;
                to += step * image.line_bytes;
            }
        });
    }
};

} // namespace fmha::hip_target
