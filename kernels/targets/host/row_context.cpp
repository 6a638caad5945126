#include "kernels/targets/host/row_context.hpp"

#include <algorithm>

namespace fmha::host_target {
namespace {

constexpr int row_vectors = 7;

} // namespace

RowContext::RowContext(const KernelConfig& config, int block_rows)
    : config_(config), stride_(round_up(block_rows, panel_columns)),
      memory_(static_cast<std::size_t>(row_vectors) * static_cast<std::size_t>(stride_)) {}

void RowContext::begin(std::int64_t rows) {
    rows_ = static_cast<int>(rows);
    rows_taken_ = 0;
}

Rows RowContext::rows() {
    return {memory_.get() + static_cast<std::ptrdiff_t>(rows_taken_++) * stride_, rows_};
}

void RowContext::fill(const FloatTile& tile, float x) const {
    std::fill_n(tile.data, static_cast<std::ptrdiff_t>(tile.rows) * tile.stride, x);
}

void RowContext::fill(const Rows& rows, float x) const {
    std::fill_n(rows.data, rows.count, x);
}

void RowContext::soft_cap(const FloatTile& scores, float inner, float outer) const {
    for (int r = 0; r < scores.rows; ++r)
        for (int c = 0; c < scores.cols; c += vec_lanes) {
            float* at = scores.row(r) + c;
            store_vec(at, tanh(load_vec(at) * inner) * outer);
        }
}

namespace {

float largest_of(const FloatTile& scores, int r) {
    const float* row = scores.row(r);
    Vec largest = splat(-__builtin_inff());
    int c = 0;
    for (; c + vec_lanes <= scores.cols; c += vec_lanes) largest = max(load_vec(row + c), largest);
    float reached = lane_max(largest);
    for (; c < scores.cols; ++c) reached = std::max(reached, row[c]);
    return reached;
}

/// Raises `count` maxima to those in `shrink`, which become exp2 of the loss of the maxima, times `unit`. A row that has seen nothing has nothing that
/// would shrink. By vectors: which maxima grow is no pattern that a branch could learn.
void raise(const Rows& top, const Rows& shrink, int count, float slack, float unit) {
    for (int r = 0; r < count; r += vec_lanes) {
        const Vec before = load_vec(top.data + r), reached = max(load_vec(shrink.data + r), before);
        const Vec now = (reached - before) * unit <= slack ? before : reached, lost = (before - now) * unit;
        const Vec kept = now == before ? Vec{} : lost;
        store_vec(shrink.data + r, host_target::exp2(before == -__builtin_inff() ? Vec{} : kept));
        store_vec(top.data + r, now);
    }
}

} // namespace

void RowContext::raise_to_row_max(const Rows& top, const Rows& shrink, const FloatTile& scores, float slack,
                                  float factor) const {
    for (int r = 0; r < scores.rows; ++r) shrink.data[r] = largest_of(scores, r) * factor;
    raise(top, shrink, scores.rows, slack, 1.0F);
}

void RowContext::raise_to_row_max(const Rows& top, const Rows& shrink, const FloatTile& scores, const Rows&,
                                  kernels::ScoreUnit unit) const {
    for (int r = 0; r < scores.rows; ++r) shrink.data[r] = largest_of(scores, r);
    raise(top, shrink, scores.rows, 0.0F, unit.in_logits);
}

void RowContext::exp2_minus(const FloatTile& scores, const Rows& top) const {
    for (int r = 0; r < scores.rows; ++r) {
        float* row = scores.row(r);
        const float reference = top.data[r] == -__builtin_inff() ? 0.0F : top.data[r];
        for (int c = 0; c < scores.cols; c += vec_lanes)
            store_vec(row + c, host_target::exp2(load_vec(row + c) - reference));
    }
}

void RowContext::exp2_minus(const FloatTile& scores, const Rows& top, float factor) const {
    map(scores, [factor](float s, int, int) { return s * factor; });
    exp2_minus(scores, top);
}

void RowContext::exp2_minus(const FloatTile& scores, const Rows& top, const Rows&,
                            kernels::ScoreUnit unit) const {
    for (int r = 0; r < scores.rows; ++r) {
        float* row = scores.row(r);
        const float reference = top.data[r] == -__builtin_inff() ? 0.0F : top.data[r];
        for (int c = 0; c < scores.cols; c += vec_lanes)
            store_vec(row + c,
                      host_target::exp2((load_vec(row + c) - reference) * unit.in_logits + unit.shift));
    }
}

void RowContext::scale_rows(const FloatTile& tile, const Rows& factor) const {
    for (int r = 0; r < tile.rows; ++r) {
        if (factor.data[r] == 1.0F) continue;
        float* row = tile.row(r);
        const float f = factor.data[r];
        for (int c = 0; c < tile.stride; c += vec_lanes) store_vec(row + c, load_vec(row + c) * f);
    }
}

void RowContext::scale_rows(const Rows& rows, const Rows& factor) const {
    for (int r = 0; r < rows.count; ++r) rows.data[r] *= factor.data[r];
}

void RowContext::add_row_parts(const Rows& total, const FloatTile& scores) const {
    for (int r = 0; r < scores.rows; ++r) {
        const float* row = scores.row(r);
        Vec sum{};
        int c = 0;
        for (; c + vec_lanes <= scores.cols; c += vec_lanes) sum += load_vec(row + c);
        float row_sum = lane_sum(sum);
        for (; c < scores.cols; ++c) row_sum += row[c];
        total.data[r] += row_sum;
    }
}

void RowContext::add_row_products(const Rows& total, const FloatTile& a, const FloatTile& b) const {
    for (int r = 0; r < a.rows; ++r) {
        const float *left = a.row(r), *right = b.row(r);
        Vec sum{};
        int c = 0;
        for (; c + vec_lanes <= a.cols; c += vec_lanes) sum += load_vec(left + c) * load_vec(right + c);
        float row_sum = lane_sum(sum);
        for (; c < a.cols; ++c) row_sum += left[c] * right[c];
        total.data[r] += row_sum;
    }
}

namespace {

/// visit(matrix, first, count): of the `rows` rows of a tile those from `first` on are of one head, the matrix of that.
template <class Visit>
void each_head(const kernels::Matrix& matrix, int rows, Visit visit) {
    const auto of_head = static_cast<int>(matrix.heads.of_head(rows));
    kernels::Matrix one = matrix;
    one.heads = {};
    for (int first = 0; first < rows; first += of_head) {
        visit(one, first, std::min(of_head, rows - first));
        one.origin += one.tensor.head_stride;
    }
}

} // namespace

void RowContext::load(const FloatTile& tile, const kernels::Matrix& matrix, std::int64_t row0,
                      std::int64_t col0) const {
    each_head(matrix, tile.rows, [&](const kernels::Matrix& of_head, int first, int count) {
        read_block(tile.row(first), tile.stride, of_head, row0, col0, count, tile.cols);
    });
}

void RowContext::store(const kernels::Matrix& matrix, const FloatTile& tile, std::int64_t row0,
                       std::int64_t col0) const {
    const auto cols = std::min<std::int64_t>(tile.cols, matrix.cols.written - col0);
    each_head(matrix, tile.rows, [&](const kernels::Matrix& of_head, int first, int count) {
        const auto rows = std::min<std::int64_t>(count, of_head.rows.written - row0);
        for (int r = 0; r < rows; ++r)
            write_line(tile.row(first + r), of_head.tensor, of_head.offset(row0 + r, col0),
                       of_head.tensor.col_stride, static_cast<int>(cols));
    });
}

void RowContext::store(const kernels::Matrix& matrix, const Rows& rows, std::int64_t row0) const {
    each_head(matrix, rows.count, [&](const kernels::Matrix& of_head, int first, int count) {
        const auto stored = std::min<std::int64_t>(count, of_head.rows.written - row0);
        write_line(rows.data + first, of_head.tensor, of_head.offset(row0, 0), of_head.tensor.row_stride,
                   static_cast<int>(stored));
    });
}

void RowContext::store_sum(float* to, const Rows& rows, float factor) const {
    float sum = 0.0F;
    for (int r = 0; r < rows.count; ++r) sum += rows.data[r];
    *to = sum == 0.0F ? 0.0F : factor * sum;
}

void RowContext::add_scaled(const FloatTile& acc, const FloatTile& tile, const Rows& factor) const {
    for (int r = 0; r < acc.rows; ++r) {
        if (factor.data[r] == 0.0F) continue;
        float* to = acc.row(r);
        const float* from = tile.row(r);
        const float f = factor.data[r];
        for (int c = 0; c < acc.cols; c += vec_lanes)
            store_vec(to + c, load_vec(to + c) + f * load_vec(from + c));
    }
}

void RowContext::scale_and_add(const FloatTile& acc, const Rows& factor, const FloatTile& tile) const {
    scale_rows(acc, factor);
    for (int r = 0; r < acc.rows; ++r) {
        float* to = acc.row(r);
        const float* from = tile.row(r);
        for (int c = 0; c < acc.cols; c += vec_lanes)
            store_vec(to + c, load_vec(to + c) + load_vec(from + c));
    }
}

void RowContext::load(const Rows& rows, const kernels::Matrix& matrix, std::int64_t row0) const {
    read_block(rows.data, 1, matrix, row0, 0, rows.count, 1);
}

} // namespace fmha::host_target
