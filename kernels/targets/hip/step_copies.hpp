#pragma once

#include "kernels/targets/hip/block.hpp"
#include "kernels/targets/hip/copied_part.hpp"

#include <cstdint>

/// Copies of steps straight to LDS (AsyncCopies::steps), in units of `words` words, which threads have in the order of their places.
/// `by_place`: a line is a column, whose elements have places of their own. `Piece` of the plan is a StagingPlan.
namespace fmha::hip_target {

/// Consecutive units of the image are the threads': each of them finds out which element of its first line belongs into its
/// own. Further down the lines only scalars change, unless the swizzle does: the offset of lines that all exist, else the address and
/// how many bytes exist behind it, in a loop that is as short as a last tile is rare. False where units are not aligned.
template <int words, auto Piece, auto Operand, class Block>
FMHA_DEVICE bool copy_consecutive(const Block& block, const Image& image, int address, const TileView& tile,
                                  const Part& part, bool by_place) {
    constexpr int unit = 4 * words;
    const int down = block.plan().threads * unit / image.line_bytes, size = tile.element_size;
    const int line_bytes = static_cast<int>(tile.line_bytes);
    const char* from = tile.data + part.line * tile.line_bytes + part.element * size;
    const int width = (tile.elements - part.element) * size, below = tile.lines - part.line;
    // passes(pass), which calls pass(lines further down, copy) for each of them, which calls copy(offset, exists) where the thread
    // takes part.
    const auto each_pass = [&](int thread, auto passes) {
        const bool kept =
            !block.template piece<Operand>().transposed || block.template piece<Piece>().keeps_places;
        const int here = kept ? thread : block.machine.local_thread(thread);
        const int line = here * unit / image.line_bytes;
        const int byte = here * unit % image.line_bytes ^ image.swizzle(line);
        passes([&](int lines, auto copy) {
            if (part.lines % down != 0 && line + lines >= part.lines) return;
            const int place = (byte ^ image.swizzle(lines)) / size;
            const int at = size * (by_place ? block.template piece<Operand>().order.at_place(place) : place);
            copy(tile.below(line) + at, part.whole_lines || at < width);
        });
    };
    // One number to ask, because two branches would take as long as some copies. A single pass has no line further down.
    const bool aligned = tile.granule >= unit;
    const int sure = aligned ? below : 0;
    if (part.lines > down && sure >= part.lines) {
        const auto place = block.machine.template copy_place<words>(address);
        const int step = block.machine.scalar(down * line_bytes);
        block.machine.each([&](int thread) {
            each_pass(thread, [&](auto pass) {
                FMHA_UNROLL
                for (int lines = 0; lines < part.lines; lines += down)
                    pass(lines, [&](int offset, bool exists) {
                        block.machine.template copy_below<words>(thread, place, lines * image.line_bytes,
                                                                 from, offset, lines / down * step, exists);
                    });
            });
        });
        return true;
    }
    if (!aligned) return false;
    const int to = block.machine.scalar(address); // or scalars are kept for the places of all passes
    block.machine.each([&](int thread) {
        each_pass(thread, [&](auto pass) {
            FMHA_NO_UNROLL
            for (int lines = 0; lines < part.lines; lines += down)
                pass(lines, [&](int offset, bool exists) {
                    block.machine.template copy_async<words>(
                        thread, to + lines * image.line_bytes + thread * unit, from + lines * tile.line_bytes,
                        offset, exists ? unit : 0, bytes_of_lines(below - lines, line_bytes, width));
                });
        });
    });
    return true;
}

/// The same of lines in pages or in pieces. False unless all of them exist.
template <int words, auto Piece, auto Operand, class Block>
FMHA_DEVICE bool copy_in_places(const Block& block, const Image& image, int address, const TileView& tile,
                                const Part& part, bool by_place) {
    if (!tile.whole) return false;
    constexpr int unit = 4 * words, together = 4;
    const int down = block.plan().threads * unit / image.line_bytes, size = tile.element_size;
    const auto place = block.machine.template copy_place<words>(address);
    const bool paged = block.template piece<Piece>().pages_ahead;
    const char* from = tile.data + tile.in_page(part.line, part.element);
    const int step = block.machine.scalar(down * static_cast<int>(tile.line_bytes));
    block.machine.each([&](int thread) {
        const bool kept =
            !block.template piece<Operand>().transposed || block.template piece<Piece>().keeps_places;
        const int here = kept ? thread : block.machine.local_thread(thread);
        const int line = here * unit / image.line_bytes;
        const int byte = here * unit % image.line_bytes ^ image.swizzle(line);
        const auto element_at = [&](int lines) {
            const int at = (byte ^ image.swizzle(lines)) / size;
            return by_place ? block.template piece<Operand>().order.at_place(at) : at;
        };
        // Kept where it is one for all passes; sums of 64 bits with it are not.
        const int first_offset = block.machine.local(tile.in_page(line, element_at(0)));
        const auto offset_at = [&](int lines) {
            if (image.swizzle(lines) == 0) return first_offset;
            return block.machine.local(tile.in_page(line, element_at(lines)));
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
                    pages[i] = tile.looked_up(block.machine, thread, corner, line, element_at(lines));
                });
            each_pass([&](int i, int lines, const Corner& corner) {
                const int further = lines * image.line_bytes, offset = offset_at(lines);
                if (paged)
                    block.machine.template copy_from<words>(thread, place, further,
                                                            tile.in_page(pages[i], corner, offset));
                else
                    block.machine.template copy_below<words>(thread, place, further, from, offset,
                                                             lines / down * step, true);
            });
        }
    });
    return true;
}

} // namespace fmha::hip_target
