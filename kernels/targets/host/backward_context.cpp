#include "kernels/targets/host/backward_context.hpp"

#include "kernels/targets/stored_types.hpp"

#include <algorithm>
#include <atomic>

namespace fmha::host_target {
namespace {

std::size_t area(int a, int b) {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

/// Extents of a block and their strides.
struct Layout {
    int m0, n0, dq, dv, rows, keys, dq_stride, dv_stride;

    explicit Layout(const KernelConfig& config)
        : m0(config.algorithm.tile.m0), n0(config.algorithm.tile.n0),
          dq(static_cast<int>(config.signature.hdim_q)), dv(static_cast<int>(config.signature.hdim_v)),
          rows(round_up(m0, panel_columns)), keys(round_up(n0, panel_columns)),
          dq_stride(round_up(dq, panel_columns)), dv_stride(round_up(dv, panel_columns)) {}

    std::size_t queries() const { return area(rows, dq_stride) + area(rows, dv_stride); }
    std::size_t keys_and_values() const { return area(keys, dq_stride) + area(keys, dv_stride); }
    std::size_t work() const { return area(std::max(rows, keys), std::max(dq_stride, dv_stride)); }
    std::size_t total() const {
        // Q and dO, K and V each in two forms, and their gradients; scores, their gradients, one of them turned.
        return 2 * queries() + 2 * keys_and_values() + area(rows, dq_stride) + keys_and_values() +
               3 * area(rows, keys) + work();
    }
};

} // namespace

BackwardContext::BackwardContext(const KernelConfig& config)
    : ScoreContext(config, config.algorithm.tile.m0, config.algorithm.tile.n0),
      weight_type_(targets::stored_types(config).p), memory_(Layout(config).total()) {
    const Layout at(config);
    float* next = memory_.get();
    const auto take = [&next](int rows, int stride) {
        float* const here = next;
        next += area(rows, stride);
        return here;
    };
    const auto tile = [&](int rows, int cols) {
        const int stride = round_up(cols, panel_columns);
        return FloatTile{take(round_up(rows, panel_columns), stride), rows, cols, stride};
    };
    const auto right = [&](int depth, int cols) {
        return Panels{take(round_up(depth, panel_columns), round_up(cols, panel_columns)), depth, cols};
    };
    query_ = {tile(at.m0, at.dq), right(at.m0, at.dq), {}};
    d_o_ = {tile(at.m0, at.dv), right(at.m0, at.dv), {}};
    key_ = {{}, right(at.n0, at.dq), right(at.dq, at.n0)};
    value_ = {{}, {}, right(at.dv, at.n0)};
    scores_ = tile(at.m0, at.n0);
    ds_ = tile(at.m0, at.n0);
    turned_ = tile(at.n0, at.m0);
    dq_ = tile(at.m0, at.dq);
    dk_ = tile(at.n0, at.dq);
    dv_ = tile(at.n0, at.dv);
    work_ = take(1, static_cast<int>(at.work()));
}

void BackwardContext::load(Operand& operand, const kernels::Matrix& matrix, std::int64_t row0,
                           std::int64_t col0) const {
    if (operand.rows.data != nullptr) RowContext::load(operand.rows, matrix, row0, col0);
    if (operand.right.data != nullptr)
        read_panels(operand.right, work_, matrix, row0, col0, operand.right.depth, operand.right.cols,
                    RowsAre::depth);
    if (operand.turned.data != nullptr)
        read_panels(operand.turned, work_, matrix, row0, col0, operand.turned.depth, operand.turned.cols,
                    RowsAre::columns);
}

void BackwardContext::product_abt(const FloatTile& acc, const Operand& a, const Operand& b) const {
    multiply_add(acc, a.rows, 0, b.turned, 1.0F);
}

void BackwardContext::product_atb(const FloatTile& acc, const FloatTile& a, const Operand& b) const {
    for (int r = 0; r < a.rows; ++r)
        for (int c = 0; c < a.cols; ++c) turned_.row(c)[r] = a.row(r)[c];
    multiply_add(acc, turned_, 0, b.right, 1.0F);
}

void BackwardContext::product_ab(const FloatTile& acc, const FloatTile& a, const Operand& b) const {
    multiply_add(acc, a, 0, b.right, 1.0F);
}

void BackwardContext::to_score_gradients(const FloatTile& ds, const FloatTile& weights, const Rows& d) const {
    for (int r = 0; r < ds.rows; ++r) {
        float* to = ds.row(r);
        const float* p = weights.row(r);
        for (int c = 0; c < ds.cols; ++c) to[c] = p[c] * (to[c] - d.data[r]);
    }
}

FloatTile BackwardContext::narrow(const FloatTile& tile) const {
    if (weight_type_ == ElementType::fp32) return tile;
    for (int r = 0; r < tile.rows; ++r) round_line(tile.row(r), tile.cols, 1.0F, weight_type_);
    return tile;
}

void BackwardContext::accumulate(const kernels::Matrix& matrix, const FloatTile& tile, std::int64_t row0,
                                 std::int64_t col0, bool atomic) const {
    auto* const base = static_cast<float*>(matrix.tensor.data);
    const auto rows = std::min<std::int64_t>(tile.rows, matrix.rows.written - row0);
    const auto cols = std::min<std::int64_t>(tile.cols, matrix.cols.written - col0);
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
            float& to = base[matrix.offset(row0 + r, col0 + c)];
            if (atomic)
                std::atomic_ref(to).fetch_add(tile.row(r)[c], std::memory_order_relaxed);
            else
                to += tile.row(r)[c];
        }
}

} // namespace fmha::host_target
