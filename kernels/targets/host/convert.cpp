#include "kernels/targets/host/convert.hpp"

#include "kernels/programs/formats.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace fmha::host_target {
namespace {

using kernels::Matrix;

template <ElementType type>
constexpr std::array<float, 256> make_table() {
    std::array<float, 256> table{};
    for (std::uint32_t code = 0; code < 256; ++code)
        table[code] = type == ElementType::e8m0 ? kernels::decode_e8m0(code)
                                                : kernels::decode(code, kernels::format_of(type));
    return table;
}
template <ElementType type>
constexpr std::array<float, 256> table_of = make_table<type>();

const float* byte_table(ElementType type) {
    switch (type) {
    case ElementType::fp8_ocp:
        return table_of<ElementType::fp8_ocp>.data();
    case ElementType::fp8_fnuz:
        return table_of<ElementType::fp8_fnuz>.data();
    case ElementType::bf8_ocp:
        return table_of<ElementType::bf8_ocp>.data();
    case ElementType::bf8_fnuz:
        return table_of<ElementType::bf8_fnuz>.data();
    case ElementType::fp4:
        return table_of<ElementType::fp4>.data();
    default:
        return table_of<ElementType::e8m0>.data();
    }
}

float from_half(std::uint16_t code) {
#if defined(__F16C__)
    return _cvtsh_ss(code);
#else
    return kernels::decode(code, kernels::format_of(ElementType::fp16));
#endif
}

void read_half(float* dst, const std::uint16_t* src, int count) {
    int i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(dst + i,
                         _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i))));
#endif
    for (; i < count; ++i) dst[i] = from_half(src[i]);
}

void round_half(float* values, int count) {
    int i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(values + i,
                         _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_loadu_ps(values + i),
                                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)));
#endif
    for (; i < count; ++i) values[i] = kernels::round_to(values[i], kernels::format_of(ElementType::fp16));
}

float from_bfloat(std::uint16_t code) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16U);
}

/// A fixed capacity for the temporaries of one line; lines are processed in pieces of it.
constexpr int piece = 256;

} // namespace

void read_line(float* dst, const TensorView& tensor, std::int64_t offset, std::int64_t stride, int count) {
    const auto each = [&](const auto* base, auto convert) {
        const auto* src = base + offset;
        if (stride == 1)
            for (int i = 0; i < count; ++i) dst[i] = convert(src[i]);
        else
            for (int i = 0; i < count; ++i) dst[i] = convert(src[i * stride]);
    };
    switch (tensor.type) {
    case ElementType::fp32:
        if (stride == 1) {
            std::copy_n(static_cast<const float*>(tensor.data) + offset, count, dst);
            return;
        }
        return each(static_cast<const float*>(tensor.data), [](float x) { return x; });
    case ElementType::fp16:
        if (stride == 1)
            return read_half(dst, static_cast<const std::uint16_t*>(tensor.data) + offset, count);
        return each(static_cast<const std::uint16_t*>(tensor.data), from_half);
    case ElementType::bf16:
        return each(static_cast<const std::uint16_t*>(tensor.data), from_bfloat);
    case ElementType::fp4: {
        const auto* bytes = static_cast<const std::uint8_t*>(tensor.data);
        const float* table = byte_table(tensor.type);
        for (int i = 0; i < count; ++i) {
            const std::int64_t element = offset + i * stride;
            dst[i] = table[(bytes[element / 2] >> (element % 2 * 4)) & 0xF];
        }
        return;
    }
    case ElementType::int32:
        return each(static_cast<const std::int32_t*>(tensor.data),
                    [](std::int32_t x) { return static_cast<float>(x); });
    case ElementType::uint8:
        return each(static_cast<const std::uint8_t*>(tensor.data),
                    [](std::uint8_t x) { return static_cast<float>(x); });
    case ElementType::fp8_ocp:
    case ElementType::fp8_fnuz:
    case ElementType::bf8_ocp:
    case ElementType::bf8_fnuz:
    case ElementType::e8m0: {
        const float* table = byte_table(tensor.type);
        return each(static_cast<const std::uint8_t*>(tensor.data),
                    [table](std::uint8_t code) { return table[code]; });
    }
    }
}

void write_line(const float* src, const TensorView& tensor, std::int64_t offset, std::int64_t stride,
                int count) {
    const auto each = [&](auto* base, auto convert) {
        auto* dst = base + offset;
        for (int i = 0; i < count; ++i) dst[i * stride] = convert(src[i]);
    };
    const ElementType type = tensor.type;
    switch (element_bits(type)) {
    case 32:
        if (stride == 1) {
            std::copy_n(src, count, static_cast<float*>(tensor.data) + offset);
            return;
        }
        return each(static_cast<float*>(tensor.data), [](float x) { return x; });
    case 16:
        return each(static_cast<std::uint16_t*>(tensor.data),
                    [type](float x) { return static_cast<std::uint16_t>(kernels::encode(x, type)); });
    default:
        return each(static_cast<std::uint8_t*>(tensor.data),
                    [type](float x) { return static_cast<std::uint8_t>(kernels::encode(x, type)); });
    }
}

void round_line(float* values, int count, float factor, ElementType type) {
    switch (type) {
    case ElementType::fp32:
        for (int i = 0; i < count; ++i) values[i] *= factor;
        return;
    case ElementType::bf16:
        for (int i = 0; i < count; ++i) values[i] = kernels::round_to_bf16(values[i] * factor);
        return;
    case ElementType::fp16:
        if (factor == 1.0F) return round_half(values, count);
        [[fallthrough]];
    default: {
        const kernels::Format format = kernels::format_of(type);
        for (int i = 0; i < count; ++i) values[i] = kernels::round_to(values[i] * factor, format);
    }
    }
}

void round_line_in_blocks(float* values, int count, ElementType type) {
    const kernels::Format format = kernels::format_of(type);
    for (int first = 0; first < count; first += 32) {
        const int n = std::min(32, count - first);
        float largest = 0.0F;
        for (int i = 0; i < n; ++i) largest = std::max(largest, values[first + i]);
        if (largest < kernels::power_of_two(-100)) {
            std::fill_n(values + first, n, 0.0F);
            continue;
        }
        int exponent = 0; // smallest with largest ≤ format.largest · 2^exponent
        const float digits = std::frexp(largest / format.largest, &exponent);
        if (digits == 0.5F) --exponent;
        const float up = kernels::power_of_two(-exponent), down = kernels::power_of_two(exponent);
        for (int i = 0; i < n; ++i)
            values[first + i] = kernels::round_to(values[first + i] * up, format) * down;
    }
}

namespace {

/// Multiplies row r of a block that was just read by the block scales of `matrix`.
void apply_scales(float* dst, const Matrix& matrix, std::int64_t r, std::int64_t col0, int cols) {
    const kernels::BlockScales& scales = matrix.scales;
    if (!scales.tensor.present()) return;
    const auto* codes = static_cast<const std::uint8_t*>(scales.tensor.data) + scales.origin +
                        r / scales.row_block * scales.tensor.row_stride;
    const float* table = byte_table(ElementType::e8m0);
    for (int c = 0; c < cols;) {
        const std::int64_t block = (col0 + c) / scales.col_block;
        const int end = static_cast<int>(std::min<std::int64_t>(cols, (block + 1) * scales.col_block - col0));
        const float scale = table[codes[block * scales.tensor.col_stride]];
        for (; c < end; ++c) dst[c] *= scale;
    }
}

/// dst[i] = element (r, c + i) of `matrix`, for i below `count`.
void read_row(float* dst, const Matrix& matrix, std::int64_t r, std::int64_t c, int count) {
    const kernels::PagedRows& paged = matrix.paged;
    if (paged.vector == 1 || paged.along_rows)
        return read_line(dst, matrix.tensor, matrix.offset(r, c), matrix.tensor.col_stride, count);
    for (int i = 0; i < count;) { // in pieces of the line
        const auto left = static_cast<int>(paged.vector - (c + i) % paged.vector);
        const int n = std::min(left, count - i);
        read_line(dst + i, matrix.tensor, matrix.offset(r, c + i), matrix.tensor.col_stride, n);
        i += n;
    }
}

/// How many of `wanted` positions from `first` exist, and how many the kernel takes for granted.
struct Span {
    int real = 0, taken = 0;
    static Span of(const kernels::Extent& extent, std::int64_t first, int wanted) {
        const auto inside = [&](std::int64_t n) {
            return static_cast<int>(std::clamp<std::int64_t>(n - first, 0, wanted));
        };
        return {inside(extent.size), inside(extent.read)};
    }
};

} // namespace

void read_block(float* dst, int dst_stride, const Matrix& matrix, std::int64_t row0, std::int64_t col0,
                int rows, int cols) {
    const Span row_span = Span::of(matrix.rows, row0, rows), col_span = Span::of(matrix.cols, col0, cols);
    const auto line = [&](int r) { return dst + static_cast<std::ptrdiff_t>(r) * dst_stride; };
    if (row_span.real == rows && col_span.real == cols && matrix.tensor.type == ElementType::fp32 &&
        (matrix.tensor.col_stride == 1 || cols == 1) && !matrix.paged.any() &&
        !matrix.scales.tensor.present()) {
        // Partial sums, of which combining reads many small blocks: nothing to convert, and nothing missing.
        const float* from = static_cast<const float*>(matrix.tensor.data) + matrix.offset(row0, col0);
        for (int r = 0; r < rows; ++r, from += matrix.tensor.row_stride)
            if (cols == 1)
                *line(r) = *from;
            else
                std::copy_n(from, cols, line(r));
        return;
    }
    const bool along_rows =
        matrix.tensor.col_stride != 1 && matrix.tensor.row_stride == 1 && !matrix.paged.any();
    if (along_rows && row_span.real > 0 && col_span.real > 0) {
        std::array<float, piece> values;
        for (int c = 0; c < col_span.real; ++c)
            for (int r0 = 0; r0 < row_span.real; r0 += piece) {
                const int n = std::min(piece, row_span.real - r0);
                read_line(values.data(), matrix.tensor, matrix.offset(row0 + r0, col0 + c), 1, n);
                for (int r = 0; r < n; ++r) line(r0 + r)[c] = values[static_cast<std::size_t>(r)];
            }
    }
    for (int r = 0; r < rows; ++r) {
        float* to = line(r);
        if (r >= row_span.taken || col_span.taken == 0 || matrix.rows.size == 0) {
            std::fill_n(to, cols, 0.0F);
            continue;
        }
        if (r < row_span.real && col_span.real > 0 && !along_rows) {
            read_row(to, matrix, row0 + r, col0, col_span.real);
        } else if (r >= row_span.real || col_span.real == 0) {
            // Past an axis without padding: the last element that exists, again.
            const std::int64_t last_row = std::min(row0 + r, matrix.rows.size - 1);
            const std::int64_t last_col = std::min(col0, matrix.cols.size - 1);
            read_row(to, matrix, last_row, last_col, std::max(1, col_span.real));
        }
        if (col_span.real < col_span.taken) {
            const float last = to[std::max(0, col_span.real - 1)];
            std::fill(to + std::max(1, col_span.real), to + col_span.taken, last);
        }
        apply_scales(to, matrix, std::min(row0 + r, matrix.rows.size - 1), col0, col_span.real);
        std::fill(to + col_span.taken, to + cols, 0.0F);
    }
}

namespace {

using Vec8 = float __attribute__((vector_size(32)));

Vec8 load8(const float* from) {
    Vec8 v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

/// to[d · panel_columns + c] = from[c · stride + d] for c, d in 0 … 7.
void transpose8(float* to, const float* from, std::ptrdiff_t stride) {
    Vec8 pairs[8], quads[8];
    for (int i = 0; i < 8; i += 2) {
        const Vec8 even = load8(from + i * stride), odd = load8(from + (i + 1) * stride);
        pairs[i] = __builtin_shufflevector(even, odd, 0, 8, 1, 9, 4, 12, 5, 13);
        pairs[i + 1] = __builtin_shufflevector(even, odd, 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int half = 0; half < 8; half += 4)
        for (int i = 0; i < 2; ++i) {
            const Vec8 low = pairs[half + i], high = pairs[half + i + 2];
            quads[half + 2 * i] = __builtin_shufflevector(low, high, 0, 1, 8, 9, 4, 5, 12, 13);
            quads[half + 2 * i + 1] = __builtin_shufflevector(low, high, 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int d = 0; d < 4; ++d) {
        const Vec8 first = __builtin_shufflevector(quads[d], quads[d + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        const Vec8 second = __builtin_shufflevector(quads[d], quads[d + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        std::memcpy(to + d * panel_columns, &first, sizeof first);
        std::memcpy(to + (d + 4) * panel_columns, &second, sizeof second);
    }
}

/// Writes the `lines` × `count` block at `src` into panels with its lines along the columns of the panels.
void place_transposed(const Panels& dst, const float* src, int src_stride, int lines, int count) {
    for (int p = 0; p * panel_columns < lines; ++p) {
        float* panel = dst.panel(p);
        const int first = p * panel_columns, n = std::min(panel_columns, lines - first);
        const auto from = [&](int c) { return src + static_cast<std::ptrdiff_t>(first + c) * src_stride; };
        const int whole_lines = n / 8 * 8, whole_count = count / 8 * 8;
        for (int c = 0; c < whole_lines; c += 8)
            for (int d = 0; d < whole_count; d += 8)
                transpose8(panel + d * panel_columns + c, from(c) + d, src_stride);
        for (int c = 0; c < n; ++c)
            for (int d = c < whole_lines ? whole_count : 0; d < count; ++d)
                panel[d * panel_columns + c] = from(c)[d];
        if (n < panel_columns)
            for (int d = 0; d < count; ++d)
                std::fill(panel + d * panel_columns + n, panel + (d + 1) * panel_columns, 0.0F);
    }
}

void place(const Panels& dst, const float* src, int src_stride, int lines, int count) {
    for (int p = 0; p * panel_columns < count; ++p) {
        float* panel = dst.panel(p);
        for (int d = 0; d < lines; ++d)
            std::memcpy(panel + d * panel_columns,
                        src + static_cast<std::ptrdiff_t>(d) * src_stride + p * panel_columns,
                        sizeof(float) * panel_columns);
    }
}

} // namespace

void read_panels(Panels& dst, float* work, const Matrix& matrix, std::int64_t row0, std::int64_t col0,
                 int depth, int cols, RowsAre rows) {
    dst.depth = depth;
    dst.cols = cols;
    const int padded_cols = round_up(cols, panel_columns);
    if (rows == RowsAre::columns) {
        const int stride = round_up(depth, vec_lanes);
        read_block(work, stride, matrix, row0, col0, cols, depth);
        place_transposed(dst, work, stride, cols, depth);
    } else {
        read_block(work, padded_cols, matrix, row0, col0, depth, padded_cols);
        place(dst, work, padded_cols, depth, padded_cols);
    }
}

} // namespace fmha::host_target
