#include "kernels/targets/host/append_context.hpp"

#include <algorithm>
#include <cstring>

namespace fmha::host_target {

AppendContext::AppendContext(const KernelConfig& config)
    : RowContext(config, config.algorithm.tile.m0), block_rows_(config.algorithm.tile.m0),
      memory_(std::size_t{4} * static_cast<std::size_t>(block_rows_) * kernels::rotary_pairs) {}

void AppendContext::begin(std::int64_t rows) {
    RowContext::begin(rows);
    rows_ = static_cast<int>(rows);
}

FloatTile AppendContext::tile(int index) const {
    const std::ptrdiff_t floats = std::ptrdiff_t{block_rows_} * kernels::rotary_pairs;
    return {memory_.get() + index * floats, rows_, kernels::rotary_pairs, kernels::rotary_pairs};
}

void AppendContext::rotate(const FloatTile& first, const FloatTile& second, const FloatTile& cosine,
                           const FloatTile& sine) const {
    for (int r = 0; r < first.rows; ++r)
        for (int c = 0; c < first.cols; ++c) {
            const float x0 = first.row(r)[c], x1 = second.row(r)[c];
            first.row(r)[c] = x0 * cosine.row(r)[c] - x1 * sine.row(r)[c];
            second.row(r)[c] = x1 * cosine.row(r)[c] + x0 * sine.row(r)[c];
        }
}

void AppendContext::copy(const kernels::Matrix& to, std::int64_t to_row, const kernels::Matrix& from,
                         std::int64_t row, std::int64_t col) const {
    const std::int64_t rows = std::min<std::int64_t>({rows_, to.rows.written - to_row, from.rows.size - row});
    const std::int64_t cols = std::min(to.cols.written, from.cols.size) - col;
    const std::int64_t size = element_bytes(from.tensor.type);
    const auto at = [size](const kernels::Matrix& m, std::int64_t r, std::int64_t c) {
        return static_cast<char*>(m.tensor.data) + m.offset(r, c) * size;
    };
    const bool together = to.tensor.col_stride == 1 && from.tensor.col_stride == 1;
    const std::int64_t run = together ? cols : 1;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < cols; c += run)
            std::memcpy(at(to, to_row + r, col + c), at(from, row + r, col + c),
                        static_cast<std::size_t>(run * size));
}

} // namespace fmha::host_target
