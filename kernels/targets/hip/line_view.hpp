#pragma once

#include "kernels/targets/hip/tile_view.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// A matrix in global memory as lines of consecutive elements: rows of a matrix, or columns of a matrix that is
/// stored column by column. Elements beyond those that loads take for granted read as 0.
struct LineView {
    const char* data = nullptr;
    std::int64_t line_bytes = 0;
    std::int64_t lines = 0, elements = 0;
    std::int32_t element_size = 0;     ///< bytes
    std::int64_t element_distance = 0; ///< bytes from one element of a line to the next
    bool aligned = false;              ///< 16-byte accesses at multiples of 16 bytes are possible
    bool gathered = false;             ///< `places` counts; then only its windows are of use
    LinePlaces places;
    kernels::HeadRows heads; ///< as in TileView
    std::int64_t head_bytes = 0;

    FMHA_DEVICE static LineView of(const kernels::Matrix& matrix, ElementType type, bool by_column = false) {
        const TensorView& t = matrix.tensor;
        const int bits = element_bits(type);
        LineView v;
        v.element_size = bits < 8 ? 1 : bits / 8;
        v.data = static_cast<const char*>(t.data) + matrix.origin * bits / 8;
        v.line_bytes = (by_column ? t.col_stride : t.row_stride) * bits / 8;
        v.element_distance = (by_column ? t.row_stride : t.col_stride) * v.element_size;
        v.lines = by_column ? matrix.cols.read : matrix.rows.read;
        // A byte of which only the first element exists is read as a whole.
        const std::int64_t elements = by_column ? matrix.rows.read : matrix.cols.read;
        v.elements = bits < 8 ? (elements * bits + 7) / 8 : elements;
        const auto places =
            reinterpret_cast<std::uintptr_t>(v.data) | static_cast<std::uintptr_t>(v.line_bytes);
        v.aligned = v.element_distance == v.element_size && (places & 15U) == 0;
        return v;
    }

    /// Of a matrix whose rows may lie in pages.
    FMHA_DEVICE static LineView of_pages(const kernels::Matrix& matrix, ElementType type, bool by_column) {
        LineView v = of(matrix, type, by_column);
        v.gathered = true;
        v.places.table = matrix.paged.table;
        v.places.page_bytes = matrix.tensor.batch_stride * v.element_size;
        v.places.piece_bytes = matrix.paged.vector > 1 ? matrix.paged.vector_stride * v.element_size : 0;
        v.places.page_bits = matrix.paged.page_bits;
        v.places.looked_up = matrix.paged.looked_up;
        v.places.rows_are_lines = !by_column;
        return v;
    }

    /// The same of the elements that stores may reach.
    FMHA_DEVICE static LineView written(const kernels::Matrix& matrix, ElementType type) {
        LineView v = of(matrix, type);
        v.lines = matrix.rows.written;
        v.elements = matrix.cols.written;
        v.take_heads(matrix);
        return v;
    }
    /// A tile has lines of the heads that `matrix` says.
    FMHA_DEVICE void take_heads(const kernels::Matrix& matrix) {
        heads = matrix.heads;
        head_bytes = heads.any() ? matrix.tensor.head_stride * element_size : 0;
    }

    FMHA_DEVICE const char* at(std::int64_t line, std::int64_t element) const {
        return data + line * line_bytes + element * element_distance;
    }

    /// How many of the `count` elements from (line, element) on exist.
    FMHA_DEVICE int existing(std::int64_t line, std::int64_t element, int count) const {
        const std::int64_t right = elements - element;
        const int in_line = right < count ? static_cast<int>(right) : count;
        return line < lines && element < elements ? in_line : 0;
    }

    /// The `count` lines from `line0` on, from element `element0` on, of which the first `end` may be read, those from
    /// `begin` on. Where rows lie in pages; `element0` is a multiple of a piece.
    FMHA_DEVICE TileView window_of_pages(std::int64_t line0, std::int64_t element0, int count, int begin,
                                         int end) const {
        TileView v;
        v.gathered = true;
        v.places = places;
        v.line_bytes = line_bytes;
        v.element_distance = element_distance;
        v.element_size = element_size;
        const bool table = places.table != nullptr;
        const bool lines_move = !(table && places.rows_are_lines),
                   elements_move = !table || places.rows_are_lines;
        v.places.first = static_cast<std::int32_t>(!table ? 0 : places.rows_are_lines ? line0 : element0);
        v.data = data + (lines_move ? line0 * line_bytes : 0);
        if (elements_move)
            v.data += places.piece_bytes == 0 ? element0 * element_distance
                                              : element0 * element_size / 16 * places.piece_bytes;
        const std::int64_t below = lines - line0, right = elements - element0;
        v.lines = below < 0 ? 0 : below < count ? static_cast<int>(below) : count;
        v.elements = right <= begin ? 0 : right < end ? static_cast<int>(right) : end;
        const auto bits = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(v.data)) |
                          static_cast<unsigned>(line_bytes) | static_cast<unsigned>(places.page_bytes) |
                          static_cast<unsigned>(places.piece_bytes) |
                          static_cast<unsigned>(v.elements * element_size);
        const bool dense = places.piece_bytes != 0 || element_distance == element_size;
        v.granule = !dense ? 0 : (bits & 15U) == 0 ? 16 : (bits & 7U) == 0 ? 8 : (bits & 3U) == 0 ? 4 : 0;
        // 32 bits count bytes within a page, and pages are less than 2^32 bytes apart.
        constexpr auto pages_far = std::uint64_t{1} << 32U;
        const auto distance = [](std::int64_t bytes) { return static_cast<std::uint64_t>(bytes); };
        const std::uint64_t limit = distance(far) / distance(count > end ? count : end);
        v.whole = v.granule >= 16 && distance(line_bytes) < limit && distance(places.piece_bytes) < limit &&
                  distance(places.page_bytes) < pages_far;
        return v;
    }

    /// How many of the `count` lines from `line0` on exist, by the halves of their number: scalar units compare no 64 bits.
    FMHA_DEVICE int existing_lines(std::int64_t line0, int count) const {
        const std::int64_t below = lines - line0;
        const auto high = static_cast<int>(below >> 32);
        const auto low = static_cast<unsigned>(below), most = static_cast<unsigned>(count);
        return high < 0 ? 0 : high > 0 || low > most ? count : static_cast<int>(low);
    }
    /// Whether lines lie one behind another, any `count` of them within 2^30 bytes, and fewer than 2^31 lines and elements exist: 32 bits say where.
    FMHA_DEVICE bool lines_near(int count) const {
        constexpr std::int64_t most = 0x7FFFFFFF;
        return in_reach(count) && lines <= most && elements <= most;
    }
    /// Whether words of neighbouring elements are aligned, and exist as a whole or not at all.
    FMHA_DEVICE bool in_words() const {
        const auto all = reinterpret_cast<std::uintptr_t>(data) | static_cast<std::uintptr_t>(line_bytes) |
                         static_cast<std::uintptr_t>(elements * element_size);
        return element_distance == element_size && (all & 3U) == 0;
    }
    /// `count` of such lines from `line0` on, which exists, and from element `element0` on, in units that are known to be
    /// aligned: `window` without its comparisons of 64 bits, for which there is no scalar instruction.
    FMHA_DEVICE TileView near_window(std::int64_t line0, std::int64_t element0, int count) const {
        TileView v;
        v.data = data + element0 * element_size +
                 static_cast<std::int64_t>(std::uint64_t{static_cast<std::uint32_t>(line0)} *
                                           static_cast<std::uint32_t>(line_bytes));
        v.line_bytes = line_bytes;
        v.element_distance = v.element_size = element_size;
        const int below = static_cast<int>(lines) - static_cast<int>(line0);
        v.lines = below < count ? below : count;
        v.elements = static_cast<int>(elements - element0);
        v.granule = 16;
        return v;
    }

    /// The `count` lines from `line0` on, from element `element0` on.
    FMHA_DEVICE TileView window(std::int64_t line0, std::int64_t element0, int count) const {
        TileView v;
        v.data = at(line0, element0);
        v.line_bytes = line_bytes;
        v.element_distance = element_distance;
        v.element_size = element_size;
        v.heads = heads;
        v.head_bytes = head_bytes;
        const std::int64_t below = lines - line0, right = elements - element0;
        v.lines = below < 0 ? 0 : below < count ? static_cast<int>(below) : count;
        v.elements = right < 0 ? 0 : right < far / 8 ? static_cast<int>(right) : static_cast<int>(far / 8);
        const auto bits = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(v.data)) |
                          static_cast<unsigned>(line_bytes) | static_cast<unsigned>(head_bytes) |
                          static_cast<unsigned>(v.elements * element_size);
        const bool near = in_reach(count) && element_distance == element_size;
        v.granule = !near ? 0 : (bits & 15U) == 0 ? 16 : (bits & 7U) == 0 ? 8 : (bits & 3U) == 0 ? 4 : 0;
        return v;
    }

  private:
    static constexpr std::int64_t far = std::int64_t{1} << 30;

    /// Unsigned, so that lines in the other direction are out of it.
    FMHA_DEVICE bool in_reach(int count) const {
        return static_cast<std::uint64_t>(line_bytes) * static_cast<unsigned>(count) <
               static_cast<std::uint64_t>(far);
    }
};

} // namespace fmha::hip_target
