#include "kernels/targets/host/tile.hpp"

namespace fmha::host_target {
namespace {

// A block of rows × panel_columns accumulators stays in registers: 2 · rows for the sums, 2 for b, 1 for a.
#if defined(__AVX512F__)
constexpr std::size_t block_rows = 12;
#else
constexpr std::size_t block_rows = 6;
#endif

template <std::size_t rows>
void block(float* c, int c_stride, const float* a, int a_stride, const float* b, int depth, float factor) {
    Vec low[rows] = {}, high[rows] = {};
    for (int d = 0; d < depth; ++d) {
        const Vec b_low = load_vec(b + d * panel_columns);
        const Vec b_high = load_vec(b + d * panel_columns + vec_lanes);
#pragma GCC unroll 16
        for (std::size_t r = 0; r < rows; ++r) {
            const float left = a[static_cast<std::ptrdiff_t>(r) * a_stride + d];
            low[r] += left * b_low;
            high[r] += left * b_high;
        }
    }
#pragma GCC unroll 16
    for (std::size_t r = 0; r < rows; ++r) {
        float* to = c + static_cast<std::ptrdiff_t>(r) * c_stride;
        store_vec(to, load_vec(to) + factor * low[r]);
        store_vec(to + vec_lanes, load_vec(to + vec_lanes) + factor * high[r]);
    }
}

template <std::size_t rows>
void block_of(std::size_t wanted, float* c, int c_stride, const float* a, int a_stride, const float* b,
              int depth, float factor) {
    if (wanted == rows)
        block<rows>(c, c_stride, a, a_stride, b, depth, factor);
    else if constexpr (rows > 1)
        block_of<rows - 1>(wanted, c, c_stride, a, a_stride, b, depth, factor);
}

} // namespace

void multiply_add(const FloatTile& acc, const FloatTile& a, int first, const Panels& b, float factor) {
    for (int panel = 0; panel < b.panel_count(); ++panel) {
        for (int r = 0; r < acc.rows;) {
            const auto left = static_cast<std::size_t>(acc.rows - r);
            // Two even blocks at the end instead of a full and a tiny one.
            const std::size_t rows = left >= 2 * block_rows || left == block_rows ? block_rows
                                     : left > block_rows                          ? (left + 1) / 2
                                                                                  : left;
            block_of<block_rows>(rows, acc.row(r) + panel * panel_columns, acc.stride, a.row(r) + first,
                                 a.stride, b.panel(panel), b.depth, factor);
            r += static_cast<int>(rows);
        }
    }
}

} // namespace fmha::host_target
