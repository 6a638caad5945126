#pragma once

#include "kernels/targets/hip/register_copies.hpp"

#include <cstdint>
#include <type_traits>

namespace fmha::hip_target {

/// The ways of a tile, or of a step of one, from global memory to LDS. `Piece` of the plan is a StagingPlan.
template <class Block, auto Piece>
class TileCopies {
    using Machine = typename Block::Machine;

  public:
    FMHA_DEVICE explicit TileCopies(const Block& block) : block_(block), through_registers_(block) {}

    /// Whether every wave copies those lines of a tile that it alone reads (StagingPlan::line_waves).
    template <auto Operand>
    FMHA_DEVICE bool copies_apart(const kernels::Matrix& matrix) const {
        if (block_.template piece<Piece>().line_waves == 1) return false;
        const OperandPlan& operand = block_.template piece<Operand>();
        return LineView::of(matrix, operand.type, operand.stored_by_column != operand.transposed).aligned;
    }

    /// Copies `extent` depths of a tile of the operand `Operand`, from depth `step` of the tile on, into the layout that the plan
    /// asks for. The tile begins at column `col0` and depth `depth0` of the operand. `units_known`: what the caller knows about its units.
    template <auto Operand>
    FMHA_DEVICE void copy_step(int address, const kernels::Matrix& matrix, std::int64_t col0,
                               std::int64_t depth0, std::int32_t step, std::int32_t extent, Phase phase,
                               Units units_known = Units::unknown) {
        const OperandPlan& operand = block_.template piece<Operand>();
        const ElementType type = operand.type;
        const bool by_column = operand.stored_by_column != operand.transposed;
        const LineView from = view(matrix, type, by_column);
        if constexpr (Block::template may<Operand>(&OperandPlan::stored_by_column, false))
            if (!operand.stored_by_column) {
                copy_depths<Operand>(address, from,
                                     {depth0, col0, operand.depth, step, 0, extent, operand.columns, phase,
                                      operand.whole_lines, units_known});
                return;
            }
        if constexpr (Block::template may<Operand>(&OperandPlan::stored_by_column)) {
            copy_columns<Operand>(address, from,
                                  {col0, storage_units(type, depth0), operand.columns, 0, units(type, step),
                                   operand.columns, units(type, extent), phase, operand.whole_lines,
                                   units_known});
            if constexpr (Block::template may<Operand>(&OperandPlan::has_scales))
                if (phase != Phase::direct)
                    through_registers_.template copy_scales<Operand>(
                        address, matrix, by_column,
                        {col0, depth0 / block_of_scales, operand.columns, 0, step / block_of_scales,
                         operand.columns, operand.scale_blocks, phase});
        }
    }

    /// Whether a tile of `lines` lines from row `row0` on, and any below it, can be read in units of 16 bytes (Units::aligned).
    template <auto Operand>
    FMHA_DEVICE bool reads_units(const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0,
                                 int lines) const {
        const LineView from = view(matrix, block_.template piece<Operand>().type, false);
        return Part{row0, col0, lines}.window(from).granule >= 16 && from.lines_near(lines);
    }

    /// Copies `part` line by line to `address`; through registers where it cannot be copied in units of 16 bytes, else in `waves` parts,
    /// each by a wave.
    FMHA_DEVICE void copy_lines(const Image& image, int address, const LineView& from, const Part& part,
                                int waves = 1) {
        if constexpr (may_copy_tiles)
            if (block_.template piece<Piece>().async == AsyncCopies::tiles) {
                const int unit = 16 / from.element_size;
                if constexpr (may_gather)
                    if (from.gathered) {
                        const TileView tile = part.window(from);
                        if (tile.granule >= 16)
                            copy_units_async(image, address, tile, part, unit);
                        else
                            through_registers_.template gather_lines<4>(image, address, tile, part, false);
                        return;
                    }
                if constexpr (may_take_heads)
                    if (from.heads.any()) {
                        if (from.aligned && from.head_bytes % 16 == 0)
                            copy_heads_async(image, address, from, part, unit);
                        else
                            through_registers_.template gather_lines<4>(image, address, part.window(from),
                                                                        part, false);
                        return;
                    }
                if (from.aligned)
                    copy_lines_async(image, address, from, part.line0 + part.line,
                                     part.element0 + part.element, part.lines, part.elements / unit, unit,
                                     waves);
                else
                    through_registers_.template gather_lines<4>(image, address, part.window(from), part,
                                                                false);
                return;
            }
        constexpr bool through_registers = Block::template may<Piece>(&StagingPlan::copies_through_registers);
        static_assert(may_copy_tiles || through_registers, "lines have a way to LDS");
        if constexpr (through_registers) through_registers_.move_lines(image, address, from, part);
    }

    /// Starts to copy the pages of a tile's rows, which begin at `first` and of which those from `end` on do not exist.
    FMHA_DEVICE void copy_pages(int address, const kernels::PagedRows& paged, std::int64_t first,
                                std::int64_t end) {
        const StagingPlan& plan = block_.template piece<Piece>();
        const std::int64_t page = first >> paged.page_bits,
                           behind = ((end - 1) >> paged.page_bits) + 1 - page;
        const int slots = plan.page_slots, existing = behind < slots ? static_cast<int>(behind) : slots;
        const auto* from = reinterpret_cast<const char*>(paged.table + page);
        const int to = block_.machine.scalar(address);
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int place = thread; place < thread + slots; place += block_.plan().threads)
                if (place < slots)
                    block_.machine.template copy_async<1>(thread, to + 4 * place, from, 4 * place, 4,
                                                          4 * existing);
        });
    }

  private:
    Block block_;
    RegisterCopies<Block, Piece> through_registers_;

    static constexpr bool may_gather = Block::template may<Piece>(&StagingPlan::gathers);
    static constexpr bool may_take_heads = Block::template may<Piece>(&StagingPlan::takes_heads);
    static constexpr bool may_copy_tiles =
        Machine::has_tile_copies && Block::template may<Piece>(&StagingPlan::async, AsyncCopies::tiles);
    static constexpr bool may_copy_steps =
        Machine::has_step_copies && Block::template may<Piece>(&StagingPlan::async, AsyncCopies::steps);

    FMHA_DEVICE LineView view(const kernels::Matrix& matrix, ElementType type, bool by_column) const {
        if constexpr (may_gather)
            if (block_.template piece<Piece>().gathers) return LineView::of_pages(matrix, type, by_column);
        return LineView::of(matrix, type, by_column);
    }

    /// `part` of lines of depths.
    template <auto Operand>
    FMHA_DEVICE void copy_depths(int address, const LineView& from, const Part& part) {
        const OperandPlan& operand = block_.template piece<Operand>();
        if constexpr (may_copy_steps)
            if (part.phase == Phase::direct) {
                copy_direct<Operand>(address, from, part, false);
                return;
            }
        if constexpr (Block::template may<Operand>(&OperandPlan::by_column))
            if (operand.by_column) {
                through_registers_.template transpose_lines<Operand>(address, from, part);
                return;
            }
        if constexpr (Block::template may<Operand>(&OperandPlan::by_column, false))
            copy_lines(operand.image, address, from, part, block_.template piece<Piece>().line_waves);
    }

    /// `part` of lines of columns.
    template <auto Operand>
    FMHA_DEVICE void copy_columns(int address, const LineView& from, const Part& part) {
        const OperandPlan& operand = block_.template piece<Operand>();
        if constexpr (may_copy_steps)
            if (part.phase == Phase::direct) {
                copy_direct<Operand>(address, from, part, !operand.order.natural);
                return;
            }
        if constexpr (Block::template may<Operand>(&OperandPlan::scatters, false))
            if (!operand.scatters()) {
                copy_lines(operand.image, address, from, part, block_.template piece<Piece>().line_waves);
                return;
            }
        if constexpr (Block::template may<Operand>(&OperandPlan::scatters))
            through_registers_.template scatter_lines<Operand>(address, from, part);
    }

    /// Starts to copy `part` straight to LDS; unaligned lines go through registers at once. `by_place`: a
    /// line is a column, whose elements have places of their own.
    template <auto Operand>
    FMHA_DEVICE void copy_direct(int address, const LineView& from, const Part& part, bool by_place) {
        const Image& image = block_.template piece<Operand>().image;
        const int words = block_.template piece<Operand>().copy_words;
        const TileView tile = through_registers_.window(from, part);
        const auto copied = [&](auto unit) {
            constexpr int count = unit;
            if constexpr (may_gather)
                if (block_.template piece<Piece>().gathers)
                    return copy_in_places<count, Operand>(image, address, tile, part, by_place);
            return copy_consecutive<count, Operand>(image, address, tile, part, by_place);
        };
        if constexpr (Machine::has_step_copies)
            if (words == 4 ? copied(std::integral_constant<int, 4>{})
                           : copied(std::integral_constant<int, 1>{}))
                return;
        // Waits count the copies that are under way behind a step, and this is none.
        if constexpr (Machine::has_step_copies)
            if (block_.template piece<Piece>().buffers > 2) block_.machine.wait_single_copies(0);
        const int patch = by_place ? through_registers_.template patch_words<Operand>() : 4;
        if (patch == 4)
            through_registers_.template gather_lines<4, Operand>(image, address, tile, part, by_place);
        else if (patch == 2)
            through_registers_.template gather_lines<2, Operand>(image, address, tile, part, by_place);
        else
            through_registers_.template gather_lines<1, Operand>(image, address, tile, part, by_place);
    }

    /// Consecutive units of the image are the threads': each of them finds out which element of its first line belongs into its
    /// own. Further down the lines only scalars change, unless the swizzle does: the offset of lines that all exist, else the address and
    /// how many bytes exist behind it, in a loop that is as short as a last tile is rare. False where units are not aligned.
    template <int words, auto Operand>
    FMHA_DEVICE bool copy_consecutive(const Image& image, int address, const TileView& tile, const Part& part,
                                      bool by_place) {
        constexpr int unit = 4 * words;
        const int down = block_.plan().threads * unit / image.line_bytes, size = tile.element_size;
        const int line_bytes = static_cast<int>(tile.line_bytes);
        const char* from = tile.data + part.line * tile.line_bytes + part.element * size;
        const int width = (tile.elements - part.element) * size, below = tile.lines - part.line;
        // passes(pass), which calls pass(lines further down, copy) for each of them, which calls copy(offset, exists) where the thread
        // takes part.
        const auto each_pass = [&](int thread, auto passes) {
            const bool kept =
                !block_.template piece<Operand>().transposed || block_.template piece<Piece>().keeps_places;
            const int here = kept ? thread : block_.machine.local(thread);
            const int line = here * unit / image.line_bytes;
            const int byte = here * unit % image.line_bytes ^ image.swizzle(line);
            passes([&](int lines, auto copy) {
                if (part.lines % down != 0 && line + lines >= part.lines) return;
                const int place = (byte ^ image.swizzle(lines)) / size;
                const int at =
                    size * (by_place ? block_.template piece<Operand>().order.at_place(place) : place);
                copy(line * line_bytes + at, part.whole_lines || at < width);
            });
        };
        // One number to ask, because two branches would take as long as some copies. A single pass has no line further down.
        const bool aligned = tile.granule >= unit;
        const int sure = aligned ? below : 0;
        if (part.lines > down && sure >= part.lines) {
            const auto place = block_.machine.template copy_place<words>(address);
            const int step = block_.machine.scalar(down * line_bytes);
            block_.machine.each([&](int thread) {
                each_pass(thread, [&](auto pass) {
                    FMHA_UNROLL
                    for (int lines = 0; lines < part.lines; lines += down)
                        pass(lines, [&](int offset, bool exists) {
                            block_.machine.template copy_below<words>(thread, place, lines * image.line_bytes,
                                                                      from, offset, lines / down * step,
                                                                      exists);
                        });
                });
            });
            return true;
        }
        if (!aligned) return false;
        const int to = block_.machine.scalar(address); // or scalars are kept for the places of all passes
        block_.machine.each([&](int thread) {
            each_pass(thread, [&](auto pass) {
                FMHA_NO_UNROLL
                for (int lines = 0; lines < part.lines; lines += down)
                    pass(lines, [&](int offset, bool exists) {
                        block_.machine.template copy_async<words>(
                            thread, to + lines * image.line_bytes + thread * unit,
                            from + lines * tile.line_bytes, offset, exists ? unit : 0,
                            bytes_of_lines(below - lines, line_bytes, width));
                    });
            });
        });
        return true;
    }

    /// The same of lines in pages or in pieces. False unless all of them exist.
    template <int words, auto Operand>
    FMHA_DEVICE bool copy_in_places(const Image& image, int address, const TileView& tile, const Part& part,
                                    bool by_place) {
        if (!tile.whole) return false;
        constexpr int unit = 4 * words, together = 4;
        const int down = block_.plan().threads * unit / image.line_bytes, size = tile.element_size;
        const auto place = block_.machine.template copy_place<words>(address);
        const bool paged = block_.template piece<Piece>().pages_ahead;
        const char* from = tile.data + tile.in_page(part.line, part.element);
        const int step = block_.machine.scalar(down * static_cast<int>(tile.line_bytes));
        block_.machine.each([&](int thread) {
            const bool kept =
                !block_.template piece<Operand>().transposed || block_.template piece<Piece>().keeps_places;
            const int here = kept ? thread : block_.machine.local(thread);
            const int line = here * unit / image.line_bytes;
            const int byte = here * unit % image.line_bytes ^ image.swizzle(line);
            const auto element_at = [&](int lines) {
                const int at = (byte ^ image.swizzle(lines)) / size;
                return by_place ? block_.template piece<Operand>().order.at_place(at) : at;
            };
            // Kept where it is one for all passes; sums of 64 bits with it are not.
            const int first_offset = block_.machine.local(tile.in_page(line, element_at(0)));
            const auto offset_at = [&](int lines) {
                if (image.swizzle(lines) == 0) return first_offset;
                return block_.machine.local(tile.in_page(line, element_at(lines)));
            };
            // Their pages first, because each copy is ordered behind all accesses.
            FMHA_UNROLL
            for (int first = 0; first < part.lines; first += together * down) {
                std::uint32_t pages[together] = {};
                const auto each_pass = [&](auto f) {
                    FMHA_UNROLL
                    for (int i = 0; i < together; ++i) {
                        const int lines = first + i * down;
                        if (lines >= part.lines || (part.lines % down != 0 && line + lines >= part.lines))
                            continue;
                        f(i, lines, Corner{part.line + lines, part.element});
                    }
                };
                if (paged)
                    each_pass([&](int i, int lines, const Corner& corner) {
                        pages[i] = tile.looked_up(block_.machine, thread, corner, line, element_at(lines));
                    });
                each_pass([&](int i, int lines, const Corner& corner) {
                    const int further = lines * image.line_bytes, offset = offset_at(lines);
                    if (paged)
                        block_.machine.template copy_from<words>(thread, place, further,
                                                                 tile.in_page(pages[i], corner, offset));
                    else
                        block_.machine.template copy_below<words>(thread, place, further, from, offset,
                                                                  lines / down * step, true);
                });
            }
        });
        return true;
    }

    /// Units whose lines, or whose columns, lie in pages of their own. Where lines divide among the threads, a thread keeps its
    /// column, so that it looks up one page where columns have them.
    FMHA_DEVICE void copy_units_async(const Image& image, int address, const TileView& tile, const Part& part,
                                      int unit) {
        const int per_line = part.elements / unit, threads = block_.plan().threads;
        const auto copy = [&](int thread, int line, int column, const char* source, bool exists) {
            block_.machine.template copy_async<4>(thread, address + line * image.line_bytes + column * 16,
                                                  exists ? source : tile.data, 0, exists ? 16 : 0);
        };
        block_.machine.each([&](int thread) {
            const int column = thread % per_line, element = part.element + column * unit;
            const auto is_there = [&](int line) {
                return part.line + line < tile.lines && element < tile.elements;
            };
            const int first = thread / per_line, step = threads / per_line;
            if (threads % per_line == 0 && !tile.places.rows_are_lines) {
                const char* source = is_there(first) ? tile.in_places(part.line + first, element) : tile.data;
                FMHA_UNROLL
                for (int line = first; line < first + part.lines; line += step) {
                    if (part.lines % step != 0 && line >= part.lines) continue;
                    copy(thread, line, column, source, is_there(line));
                    source += step * tile.line_bytes;
                }
                return;
            }
            // Tiles begin at a page: of pages that a pass over the lines does not leave, each is looked up once.
            const int page_lines = 1 << tile.places.page_bits;
            if (threads % per_line == 0 && tile.places.table != nullptr && page_lines % step == 0 &&
                part.lines % page_lines == 0) {
                FMHA_UNROLL
                for (int page = 0; page < part.lines; page += page_lines) {
                    const int top = page + first;
                    const char* source = is_there(top) ? tile.in_places(part.line + top, element) : tile.data;
                    FMHA_UNROLL
                    for (int line = top; line < top + page_lines; line += step) {
                        copy(thread, line, column, source, is_there(line));
                        source += step * tile.line_bytes;
                    }
                }
                return;
            }
            if (threads % per_line == 0) {
                FMHA_PIPELINED
                for (int line = first; line < part.lines; line += step) {
                    const bool exists = is_there(line);
                    copy(thread, line, column, exists ? tile.in_places(part.line + line, element) : nullptr,
                         exists);
                }
                return;
            }
            FMHA_NO_UNROLL
            for (int index = thread; index < part.lines * per_line; index += threads) {
                const int line = index / per_line, at = index % per_line;
                const int from_line = part.line + line, from_element = part.element + at * unit;
                const bool exists = from_line < tile.lines && from_element < tile.elements;
                copy(thread, line, at, exists ? tile.in_places(from_line, from_element) : nullptr, exists);
            }
        });
    }

    /// Lines of several heads, from the first line and element on: few, and once a block.
    FMHA_DEVICE void copy_heads_async(const Image& image, int address, const LineView& from, const Part& part,
                                      int unit) {
        const int per_line = part.elements / unit, threads = block_.plan().threads;
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int first = 0; first < part.lines * per_line; first += threads) {
                const int index = first + thread, line = index / per_line, column = index % per_line;
                if (part.lines * per_line % threads != 0 && index >= part.lines * per_line) continue;
                const std::int64_t row = part.line0 + from.heads.row(line),
                                   element = part.element0 + column * unit;
                const int present = from.existing(row, element, unit);
                block_.machine.template copy_async<4>(thread, address + line * image.line_bytes + column * 16,
                                                      from.at(row, element) +
                                                          from.heads.head(line) * from.head_bytes,
                                                      0, present * from.element_size);
            }
        });
    }

    /// Where lines divide among the threads, a thread keeps its column and goes down the lines, so that it needs one
    /// address for all of its units. With several `waves` each has the lines behind those of the wave before.
    FMHA_DEVICE void copy_lines_async(const Image& image, int address, const LineView& from,
                                      std::int64_t line0, std::int64_t element0, int all_lines, int per_line,
                                      int unit, int waves) {
        const int threads = block_.plan().threads / waves, step = threads / per_line,
                  lines = all_lines / waves;
        block_.machine.each([&](int block_thread) {
            const int thread = waves == 1 ? block_thread : block_thread % threads,
                      line1 = waves == 1 ? 0 : block_thread / threads * lines;
            if (threads % per_line != 0) {
                FMHA_UNROLL
                for (int first = 0; first < lines * per_line; first += threads) {
                    const int index = first + thread, line = line1 + index / per_line,
                              column = index % per_line;
                    if (lines * per_line % threads != 0 && index >= lines * per_line) continue;
                    const int present = from.existing(line0 + line, element0 + column * unit, unit);
                    block_.machine.template copy_async<4>(
                        block_thread, address + line * image.line_bytes + column * 16,
                        from.at(line0 + line, element0 + column * unit), 0, present * from.element_size);
                }
                return;
            }
            const int line = line1 + thread / per_line, column = thread % per_line;
            const std::int64_t element = element0 + column * unit;
            // Where few rows wait for memory, any work between two copies is time in which nothing is asked for: a whole tile
            // needs neither sizes nor a chain of addresses.
            constexpr std::int64_t near = std::int64_t{1} << 24;
            if (block_.template piece<Piece>().tiles_ahead && lines % step == 0 &&
                from.lines - line0 >= all_lines && from.elements - element0 >= per_line * unit &&
                from.line_bytes > 0 && from.line_bytes < near) {
                const char* const first = from.at(line0 + line, element);
                const int below = step * static_cast<int>(from.line_bytes);
                const int to = address + line * image.line_bytes + column * 16;
                FMHA_UNROLL
                for (int n = 0; n < lines / step; ++n)
                    block_.machine.copy_once(block_thread, to + n * step * image.line_bytes,
                                             first + std::int64_t{n} * below);
                return;
            }
            const int bytes = from.existing(0, element, unit) * from.element_size;
            const std::int64_t below = from.lines - line0 - line;
            const int existing = bytes == 0 || below < 0 ? 0
                                 : below < lines         ? static_cast<int>(below)
                                                         : lines;
            const char* source = from.at(line0 + line, element);
            int to = address + line * image.line_bytes + column * 16;
            FMHA_UNROLL
            for (int down = 0; down < lines; down += step) {
                if (lines % step != 0 && line - line1 + down >= lines) continue;
                block_.machine.template copy_async<4>(block_thread, to, source, 0,
                                                      down < existing ? bytes : 0);
                source += step * from.line_bytes;
                to += step * image.line_bytes;
            }
        });
    }
};

} // namespace fmha::hip_target
