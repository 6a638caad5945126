#pragma once

#include "kernels/programs/matrix.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Words as the widest memory instruction takes them.
template <int count, int alignment = 4 * count>
struct alignas(alignment) Words {
    std::uint32_t word[static_cast<unsigned>(count)];
};

/// Lines are made of storage units: elements, or bytes of several elements that are packed into one (T-2).
FMHA_DEVICE constexpr std::int64_t storage_units(ElementType type, std::int64_t elements) {
    return element_bits(type) < 8 ? elements * element_bits(type) / 8 : elements;
}

/// Where lines lie whose distance is not fixed: in pages, or in pieces of 16 bytes that have a distance of their own
/// (kernels::PagedRows).
struct LinePlaces {
    const std::int32_t* table = nullptr;
    std::int64_t page_bytes = 0;
    std::int64_t piece_bytes = 0; ///< 0: elements of a line have the distance of the view
    std::int32_t page_bits = 0;
    std::int32_t first = 0;      ///< of a tile: the row of the table's first page where it begins
    bool rows_are_lines = false; ///< slots of pages are lines, not elements
    std::int32_t looked_up = 0;  ///< where in LDS the pages of a tile are (StagingPlan::pages_ahead)
};

/// A place in a tile that the threads of a block share.
struct Corner {
    std::int32_t line = 0, element = 0;
};

/// From the first byte of `count` lines to behind the `width` bytes of the last one; 0 where there are none. Written without
/// count − 1: compilers would test its borrow in the vector unit, and compute there what depends on it.
FMHA_DEVICE constexpr int bytes_of_lines(int count, int line_bytes, int width) {
    return count <= 0 ? 0 : count * line_bytes - (line_bytes - width);
}

/// The part of a matrix that one copy takes, with coordinates of its own. "Element" means a storage unit.
struct TileView {
    const char* data = nullptr;
    std::int64_t line_bytes = 0, element_distance = 0;
    std::int32_t lines = 0, elements = 0; ///< those that exist; the others read as 0
    std::int32_t element_size = 0;
    /// Units of so many bytes are aligned, exist as a whole or not at all, and lie less than 2^31 bytes from `data`; 0
    /// where elements have to be read one by one.
    std::int32_t granule = 0;
    bool whole_lines = false; ///< `elements` is as many as anybody asks for
    /// Where there are units, the numbers of lines and their distance have 24 bits. CDNA adds such a product in one instruction of 32 bits,
    /// others in one of 64.
    bool short_lines = false;
    bool gathered = false; ///< `places` counts
    bool whole = false;    ///< where `gathered`: all that is asked for exists, and `in_page` has it
    LinePlaces places;
    kernels::HeadRows heads; ///< whose lines the tile has, this first; those of the next lie behind
    std::int64_t head_bytes = 0;

    FMHA_DEVICE const char* at(int line, int element) const {
        return data + line * line_bytes + element * element_distance;
    }
    /// Bytes from one line to one `count` further down, which lie less than 2^31 bytes apart.
    FMHA_DEVICE int below(int count) const {
        const int bits = short_lines ? 0xFFFFFF : -1;
        return (count & bits) * (static_cast<std::int32_t>(line_bytes) & bits);
    }
    /// From the first head to that of a row of the tile.
    FMHA_DEVICE std::int64_t to_head(int row) const { return heads.any() ? heads.head(row) * head_bytes : 0; }
    /// The same where `gathered`, of an element that exists: others may have no page. A name of its own, because a branch in `at`
    /// costs registers in kernels that gather nothing.
    FMHA_DEVICE const char* in_places(int line, int element) const {
        const char* from = data;
        if (places.table != nullptr) {
            const int row = places.first + (places.rows_are_lines ? line : element);
            const int page = row >> places.page_bits, slot = row - (page << places.page_bits);
            line = places.rows_are_lines ? slot : line;
            element = places.rows_are_lines ? element : slot;
            from += places.table[page] * places.page_bytes;
        }
        if (places.piece_bytes == 0) return from + line * line_bytes + element * element_distance;
        const int piece = 16 / element_size;
        return from + line * line_bytes + element / piece * places.piece_bytes +
               element % piece * element_size;
    }

    /// From `data`, or where `data` would be in that page, to an element. Tiles begin with a page.
    FMHA_DEVICE int in_page(int line, int element) const {
        const int slots = places.table != nullptr ? (1 << places.page_bits) - 1 : -1;
        const int slot = places.rows_are_lines ? line & slots : line,
                  along = places.rows_are_lines ? element : element & slots;
        const int bytes = slot * static_cast<std::int32_t>(line_bytes);
        if (places.piece_bytes == 0) return bytes + along * static_cast<std::int32_t>(element_distance);
        const int piece = 16 / element_size;
        return bytes + along / piece * static_cast<std::int32_t>(places.piece_bytes) +
               along % piece * element_size;
    }
    /// Which of the tile's pages has an element.
    FMHA_DEVICE int page_of(int line, int element) const {
        return (places.rows_are_lines ? line : element) >> places.page_bits;
    }
    /// The page of an element, as it was looked up ahead. Here and below line and element are counted from a corner, and have no bit in
    /// common with it: parts, and what threads take of them, are powers of two.
    template <class Machine>
    FMHA_DEVICE std::uint32_t looked_up(Machine& machine, int thread, const Corner& corner, int line,
                                        int element) const {
        std::uint32_t page = 0;
        const int first = machine.scalar(places.looked_up + 4 * page_of(corner.line, corner.element));
        machine.template lds_read<1>(thread, first + 4 * page_of(line, element), &page);
        return page;
    }
    /// Where an element of that page lies, where `whole`, `offset` bytes from the corner. A multiplication of 64 bits and a sum.
    FMHA_DEVICE const char* in_page(std::uint32_t page, const Corner& corner, int offset) const {
        const auto distance = static_cast<std::uint32_t>(places.page_bytes);
        return data + in_page(corner.line, corner.element) + offset + std::uint64_t{page} * distance;
    }

    /// `count` words of consecutive elements; the position of the first is a multiple of their number.
    template <int count, class Machine>
    FMHA_DEVICE Words<count> read(Machine& machine, int thread, int line, int element) const {
        return words_at<count>(machine, thread, line, element, granule >= 4 * count);
    }

    /// The same, line and element counted from a corner of the tile, at once only where units of 16 bytes are: narrower ones need no
    /// code of their own. Lines do not overlap there, so that missing elements lie behind the last existing one, or in a line
    /// behind its elements. `shares_element`: all threads ask for the same one, so that scalars say whether it exists.
    template <int count, class Machine>
    FMHA_DEVICE Words<count> read_from(Machine& machine, int thread, const Corner& corner, int line,
                                       int element, bool shares_element = false) const {
        if constexpr (Machine::ends_buffers) {
            if (granule >= 16) {
                Words<count> out;
                const int width = (elements - corner.element) * element_size, left = lines - corner.line;
                const int bytes = static_cast<std::int32_t>(line_bytes);
                const bool exists = whole_lines || element * element_size < width;
                machine.template global_read<count>(
                    thread, data + corner.line * line_bytes + corner.element * element_size,
                    below(line) + element * element_size, shares_element || exists, out.word,
                    shares_element && !exists ? 0 : bytes_of_lines(left, bytes, width));
                return out;
            }
        }
        return words_at<count>(machine, thread, corner.line + line, corner.element + element, granule >= 16);
    }

    /// The same in a loop that has no scalars to spare for elements one by one, which go along by one address.
    template <int count, class Machine>
    FMHA_DEVICE Words<count> read_again(Machine& machine, int thread, const Corner& corner, int line,
                                        int element, bool shares_element) const {
        if (granule >= 16) return read_from<count>(machine, thread, corner, line, element, shares_element);
        Words<count> out{};
        gather_along(machine.local(corner.line + line), machine.local(corner.element + element), out);
        return out;
    }

    /// The same where `gathered`.
    template <int count, class Machine>
    FMHA_DEVICE Words<count> read_in_places(Machine& machine, int thread, int line, int element) const {
        Words<count> out{};
        const bool exists = line < lines && element < elements;
        if (granule >= 4 * count)
            machine.template global_read_at<count>(thread, exists ? in_places(line, element) : nullptr,
                                                   exists, out.word);
        else
            gather_in_places(machine.local(line), machine.local(element), out);
        return out;
    }

    /// The same where `whole`, of a page that was looked up ahead.
    template <int count, class Machine>
    FMHA_DEVICE Words<count> read_looked_up(Machine& machine, int thread, const Corner& corner, int line,
                                            int element) const {
        Words<count> out;
        const std::uint32_t page = looked_up(machine, thread, corner, line, element);
        const int offset = machine.local(in_page(line, element)); // sums of 64 bits with it are not kept
        machine.template global_read_at<count>(thread, in_page(page, corner, offset), true, out.word);
        return out;
    }

    /// The same of a page that holds whole tiles.
    template <int count, class Machine>
    FMHA_DEVICE Words<count> read_in_page(Machine& machine, int thread, const Corner& corner, int line,
                                          int element) const {
        Words<count> out;
        machine.template global_read<count>(thread, data + in_page(corner.line, corner.element),
                                            in_page(line, element), true, out.word);
        return out;
    }

    /// Whether `count` elements, from a multiple of their number on, are read at once.
    FMHA_DEVICE bool reads_at_once(int count) const {
        const int bytes = count * element_size;
        return bytes >= 4 && granule >= (bytes < 16 ? bytes : 16);
    }

    /// The byte of one element of a byte; of a view whose elements lie next to each other, less than 2^31 bytes from `data`.
    template <class Machine>
    FMHA_DEVICE std::uint32_t read_byte(Machine& machine, int thread, int line, int element) const {
        return machine.global_read_byte(thread, data, line * static_cast<std::int32_t>(line_bytes) + element,
                                        line < lines && element < elements);
    }

    /// The bits of `count` consecutive elements, a power of two of at most 8, the first at a multiple of it.
    /// `at_once` is the result of `reads_at_once` for them.
    template <class Machine>
    FMHA_DEVICE void elements_at(Machine& machine, int thread, int line, int element, int count, bool at_once,
                                 std::uint32_t* bits) const {
        const int per_word = 4 / element_size;
        if (count < per_word) {
            FMHA_UNROLL
            for (int i = 0; i < count; ++i)
                bits[i] = line < lines && element + i < elements
                              ? load(at(machine.local(line), machine.local(element + i)))
                              : 0U;
        } else if (count == per_word) {
            split(words_at<1>(machine, thread, line, element, at_once), bits);
        } else if (count == 2 * per_word) {
            split(words_at<2>(machine, thread, line, element, at_once), bits);
        } else {
            FMHA_UNROLL
            for (int i = 0; i < count; i += 4 * per_word)
                split(words_at<4>(machine, thread, line, element + i, at_once), bits + i);
        }
    }

    /// The same where `reads_at_once`, and `ends_buffers`: behind the end of a line may be anything, behind the last one 0. The end
    /// of the buffer says so for all lanes, and they compare nothing.
    template <class Machine>
    FMHA_DEVICE void elements_of_lines(Machine& machine, int thread, int line, int element, int count,
                                       std::uint32_t* bits) const {
        const int per_word = 4 / element_size, bytes = static_cast<std::int32_t>(line_bytes);
        const int existing = bytes_of_lines(lines, bytes, elements * element_size);
        const auto read = [&]<int words>(std::uint32_t* to, int from) {
            Words<words> out;
            machine.template global_read<words>(thread, data, line * bytes + from * element_size, true,
                                                out.word, existing);
            split(out, to);
        };
        if (count == per_word) {
            read.template operator()<1>(bits, element);
        } else if (count == 2 * per_word) {
            read.template operator()<2>(bits, element);
        } else {
            FMHA_UNROLL
            for (int i = 0; i < count; i += 4 * per_word) read.template operator()<4>(bits + i, element + i);
        }
    }

    /// Element by element: the words are shifted along, so that the loop stays a loop.
    template <int count>
    FMHA_DEVICE void gather(int line, int element, Words<count>& out) const {
        gather_from(line, element, out, [&](int e) { return at(line, e); });
    }
    /// The same where lines are of several heads.
    template <int count>
    FMHA_DEVICE void gather_of_heads(int line, int element, Words<count>& out) const {
        const int row = heads.row(line);
        gather_from(row, element, out, [&](int e) { return at(row, e) + to_head(line); });
    }
    /// The same by one address.
    template <int count>
    FMHA_DEVICE void gather_along(int line, int element, Words<count>& out) const {
        const char* next = line < lines && element < elements ? at(line, element) : data;
        gather_from(line, element, out, [&](int) {
            const char* const here = next;
            next += element_distance;
            return here;
        });
    }
    template <int count>
    FMHA_DEVICE void gather_in_places(int line, int element, Words<count>& out) const {
        gather_from(line, element, out, [&](int e) { return in_places(line, e); });
    }

  private:
    template <int count, class Machine>
    FMHA_DEVICE Words<count> words_at(Machine& machine, int thread, int line, int element,
                                      bool at_once) const {
        Words<count> out{};
        if (at_once)
            machine.template global_read<count>(
                thread, data, line * static_cast<std::int32_t>(line_bytes) + element * element_size,
                line < lines && element < elements, out.word);
        else
            gather(machine.local(line), machine.local(element), out);
        return out;
    }

    template <int count, class Place>
    FMHA_DEVICE void gather_from(int line, int element, Words<count>& out, Place place) const {
        const int wanted = count * 4 / element_size;
        FMHA_NO_UNROLL
        for (int e = 0; e < wanted; ++e) {
            const bool exists = line < lines && element + e < elements;
            const std::uint32_t bits = exists ? load(place(element + e)) : 0U;
            FMHA_UNROLL
            for (int w = 0; w < count; ++w) {
                const std::uint32_t next = w + 1 < count ? out.word[w + 1] : bits;
                out.word[w] = element_size == 4   ? next
                              : element_size == 2 ? out.word[w] >> 16U | next << 16U
                                                  : out.word[w] >> 8U | next << 24U;
            }
        }
    }

    template <int count>
    FMHA_DEVICE void split(const Words<count>& words, std::uint32_t* bits) const {
        const int per_word = 4 / element_size;
        const std::uint32_t mask = 0xFFFFFFFFU >> (32 - 8 * element_size);
        FMHA_UNROLL
        for (int i = 0; i < count * per_word; ++i)
            bits[i] = words.word[i / per_word] >> (i % per_word * 8 * element_size) & mask;
    }

    FMHA_DEVICE std::uint32_t load(const char* from) const {
        if (element_size == 4) return *reinterpret_cast<const std::uint32_t*>(from);
        if (element_size == 2) return *reinterpret_cast<const std::uint16_t*>(from);
        return *reinterpret_cast<const std::uint8_t*>(from);
    }
};

} // namespace fmha::hip_target
