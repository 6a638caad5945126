#pragma once

#include "kernels/targets/hip/block.hpp"
#include "kernels/targets/hip/copied_part.hpp"

#include <cstdint>

/// Copies of whole tiles straight to LDS (AsyncCopies::tiles), in units of 16 bytes, which have `unit` elements.
/// `Piece` of the plan is a StagingPlan.
namespace fmha::hip_target {

/// Units whose lines, or whose columns, lie in pages of their own. Where lines divide among the threads, a thread keeps its
/// column, so that it looks up one page where columns have them.
template <class Block>
FMHA_DEVICE void copy_units_async(const Block& block, const Image& image, int address, const TileView& tile,
                                  const Part& part, int unit) {
    const int per_line = part.elements / unit, threads = block.plan().threads;
    const auto copy = [&](int thread, int line, int column, const char* source, bool exists) {
        block.machine.template copy_async<4>(thread, address + line * image.line_bytes + column * 16,
                                             exists ? source : tile.data, 0, exists ? 16 : 0);
    };
    block.machine.each([&](int thread) {
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
template <class Block>
FMHA_DEVICE void copy_heads_async(const Block& block, const Image& image, int address, const LineView& from,
                                  const Part& part, int unit) {
    const int per_line = part.elements / unit, threads = block.plan().threads;
    block.machine.each([&](int thread) {
        FMHA_UNROLL
        for (int first = 0; first < part.lines * per_line; first += threads) {
            const int index = first + thread, line = index / per_line, column = index % per_line;
            if (part.lines * per_line % threads != 0 && index >= part.lines * per_line) continue;
            const std::int64_t row = part.line0 + from.heads.row(line),
                               element = part.element0 + column * unit;
            const int present = from.existing(row, element, unit);
            block.machine.template copy_async<4>(thread, address + line * image.line_bytes + column * 16,
                                                 from.at(row, element) +
                                                     from.heads.head(line) * from.head_bytes,
                                                 0, present * from.element_size);
        }
    });
}

/// Where lines divide among the threads, a thread keeps its column and goes down the lines, so that it needs one
/// address for all of its units. With several `waves` each has the lines behind those of the wave before.
template <auto Piece, class Block>
FMHA_DEVICE void copy_lines_async(const Block& block, const Image& image, int address, const LineView& from,
                                  std::int64_t line0, std::int64_t element0, int all_lines, int per_line,
                                  int unit, int waves) {
    const int threads = block.plan().threads / waves, step = threads / per_line, lines = all_lines / waves;
    block.machine.each([&](int block_thread) {
        const int thread = waves == 1 ? block_thread : block_thread % threads,
                  line1 = waves == 1 ? 0 : block_thread / threads * lines;
        if (threads % per_line != 0) {
            FMHA_UNROLL
            for (int first = 0; first < lines * per_line; first += threads) {
                const int index = first + thread, line = line1 + index / per_line, column = index % per_line;
                if (lines * per_line % threads != 0 && index >= lines * per_line) continue;
                const int present = from.existing(line0 + line, element0 + column * unit, unit);
                block.machine.template copy_async<4>(
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
        if (block.template piece<Piece>().tiles_ahead && lines % step == 0 &&
            from.lines - line0 >= all_lines && from.elements - element0 >= per_line * unit &&
            from.line_bytes > 0 && from.line_bytes < near) {
            const char* const first = from.at(line0 + line, element);
            const int below = step * static_cast<int>(from.line_bytes);
            const int to = address + line * image.line_bytes + column * 16;
            FMHA_UNROLL
            for (int n = 0; n < lines / step; ++n)
                block.machine.copy_once(block_thread, to + n * step * image.line_bytes,
                                        first + std::int64_t{n} * below);
            return;
        }
        const int bytes = from.existing(0, element, unit) * from.element_size;
        const std::int64_t below = from.lines - line0 - line;
        const int existing = bytes == 0 || below < 0 ? 0 : below < lines ? static_cast<int>(below) : lines;
        const char* source = from.at(line0 + line, element);
        int to = address + line * image.line_bytes + column * 16;
        FMHA_UNROLL
        for (int down = 0; down < lines; down += step) {
            if (lines % step != 0 && line - line1 + down >= lines) continue;
            block.machine.template copy_async<4>(block_thread, to, source, 0, down < existing ? bytes : 0);
            source += step * from.line_bytes;
            to += step * image.line_bytes;
        }
    });
}

} // namespace fmha::hip_target
