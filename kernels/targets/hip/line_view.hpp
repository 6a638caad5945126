#pragma once

#include "kernels/programs/matrix.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Words as the widest memory instruction takes them.
template <int count>
struct alignas(4 * count) Words {
    std::uint32_t word[static_cast<unsigned>(count)];
};

/// A matrix in global memory as lines of consecutive elements: rows of a matrix, or columns of one that is
/// stored column by column. What lies beyond the elements that loads take for granted reads as 0.
struct LineView {
    const char* data = nullptr;
    std::int64_t line_bytes = 0;
    std::int64_t lines = 0, elements = 0;
    std::int32_t element_size = 0;     ///< bytes
    std::int64_t element_distance = 0; ///< bytes from one element of a line to the next
    bool aligned = false;              ///< 16-byte accesses at multiples of 16 bytes are possible

    FMHA_DEVICE static LineView of(const kernels::Matrix& matrix, ElementType type, bool by_column = false) {
        const TensorView& t = matrix.tensor;
        LineView v;
        v.element_size = element_bits(type) / 8;
        v.data = static_cast<const char*>(t.data) + matrix.origin * v.element_size;
        v.line_bytes = (by_column ? t.col_stride : t.row_stride) * v.element_size;
        v.element_distance = (by_column ? t.row_stride : t.col_stride) * v.element_size;
        v.lines = by_column ? matrix.cols.read : matrix.rows.read;
        v.elements = by_column ? matrix.rows.read : matrix.cols.read;
        const auto bits =
            reinterpret_cast<std::uintptr_t>(v.data) | static_cast<std::uintptr_t>(v.line_bytes);
        v.aligned = v.element_distance == v.element_size && (bits & 15U) == 0;
        return v;
    }

    FMHA_DEVICE const char* at(std::int64_t line, std::int64_t element) const {
        return data + line * line_bytes + element * element_distance;
    }

    /// How many of the `count` elements from (line, element) on exist.
    FMHA_DEVICE int existing(std::int64_t line, std::int64_t element, int count) const {
        if (line >= lines || element >= elements) return 0;
        return elements - element < count ? static_cast<int>(elements - element) : count;
    }

    /// Reads `count` words of consecutive elements; the position of the first is a multiple of their number.
    template <int count>
    FMHA_DEVICE Words<count> read(std::int64_t line, std::int64_t element) const {
        const int per_word = 4 / element_size;
        const int wanted = count * per_word, present = existing(line, element, wanted);
        if (aligned && present == wanted) return *reinterpret_cast<const Words<count>*>(at(line, element));
        Words<count> out;
        FMHA_UNROLL
        for (int w = 0; w < count; ++w) {
            std::uint32_t word = 0;
            FMHA_NO_UNROLL
            for (int e = 0; e < per_word && w * per_word + e < present; ++e) {
                const char* from = at(line, element + w * per_word + e);
                const std::uint32_t bits = element_size == 4   ? *reinterpret_cast<const std::uint32_t*>(from)
                                           : element_size == 2 ? *reinterpret_cast<const std::uint16_t*>(from)
                                                               : *reinterpret_cast<const std::uint8_t*>(from);
                word |= bits << (8 * element_size * e);
            }
            out.word[w] = word;
        }
        return out;
    }
};

} // namespace fmha::hip_target
