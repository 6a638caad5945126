#include "kernels/targets/host/faults/faulty_context.hpp"

#include "kernels/programs/formats.hpp"

#include <algorithm>

namespace fmha::host_target {
namespace {

float* element(const Panels& operand, std::int64_t depth, std::int64_t column) {
    return operand.panel(static_cast<int>(column / panel_columns)) + depth * panel_columns +
           column % panel_columns;
}

void hide_key(const FloatTile& scores, std::int64_t column) {
    if (column < 0 || column >= scores.cols) return;
    for (int r = 0; r < scores.rows; ++r) scores.row(r)[column] = -__builtin_inff();
}

/// The largest value of `type` that is at most x, for x ≥ 0: codes of non-negative values are in order.
float truncated(float x, ElementType type) {
    const std::uint32_t code = kernels::encode(x, type);
    const TensorView view{const_cast<std::uint32_t*>(&code), type};
    float nearest = 0.0F;
    read_line(&nearest, view, 0, 1, 1);
    if (nearest <= x || code == 0) return nearest;
    const std::uint32_t below = code - 1;
    read_line(&nearest, TensorView{const_cast<std::uint32_t*>(&below), type}, 0, 1, 1);
    return nearest;
}

} // namespace

void FaultyContext::load(Panels& value, const kernels::Matrix& matrix, std::int64_t row0, std::int64_t col0) {
    HostContext::load(value, matrix, row0, col0);
    if (is(Fault::value_rows_swapped) && value.depth > 1)
        for (int c = 0; c < value.cols; ++c) std::swap(*element(value, 0, c), *element(value, 1, c));
    const std::int64_t last = args_->shape.hdim_v - 1 - col0;
    if (is(Fault::hdim_v_tail_lost) && last >= 0 && last < value.cols)
        for (int d = 0; d < value.depth; ++d) *element(value, d, last) = 0.0F;
}

void FaultyContext::load_transposed(Panels& key, const kernels::Matrix& matrix, std::int64_t row0,
                                    std::int64_t col0) {
    HostContext::load_transposed(key, matrix, row0, col0);
    // One channel past the end, as if multiplied by a query channel of zero: harmless unless the memory holds
    // NaN.
    const bool has_padding = matrix.tensor.col_stride == 1 && matrix.tensor.row_stride > matrix.cols.size;
    if (is(Fault::padding_read) && has_padding && row0 < matrix.rows.size && col0 == 0) {
        float beyond = 0.0F;
        read_line(&beyond, matrix.tensor, matrix.offset(row0, matrix.cols.size), 1, 1);
        *element(key, 0, 0) += 0.0F * beyond;
    }
}

void FaultyContext::soft_cap(const FloatTile& scores, float inner, float outer) {
    if (is(Fault::soft_cap_after_mask))
        late_soft_cap_ = {inner, outer};
    else
        HostContext::soft_cap(scores, inner, outer);
}

void FaultyContext::add_bias(const FloatTile& scores, kernels::Matrix bias, std::int64_t row0,
                             std::int64_t key0) {
    if (is(Fault::bias_row_stride_wrong) && bias.tensor.row_stride > 1) --bias.tensor.row_stride;
    HostContext::add_bias(scores, bias, row0, key0);
}

void FaultyContext::raise_to_row_max(const Rows& top, const Rows& shrink, const FloatTile& scores) {
    if (late_soft_cap_) HostContext::soft_cap(scores, late_soft_cap_->inner, late_soft_cap_->outer);
    if (is(Fault::last_key_dropped)) hide_key(scores, entry_.seqlen_k - 1 - key0_);
    if (is(Fault::middle_key_dropped)) hide_key(scores, entry_.seqlen_k / 2 - key0_);
    HostContext::raise_to_row_max(top, shrink, scores);
    rescale_pending_ = tiles_seen_ == 2;
}

void FaultyContext::scale_rows(const FloatTile& tile, const Rows& factor) {
    const bool missed = is(Fault::rescale_missed) && rescale_pending_;
    rescale_pending_ = false;
    if (!missed) HostContext::scale_rows(tile, factor);
}

void FaultyContext::generate(const ByteTile& bytes, const kernels::RandomSquares& squares, std::int64_t row0,
                             std::int64_t key0) {
    HostContext::generate(bytes, squares, row0 + (is(Fault::dropout_byte_off_by_one) ? 1 : 0), key0);
}

FloatTile FaultyContext::narrow(const FloatTile& scores) const {
    const bool has_codes = element_bits(weight_type()) == 16 || element_bits(weight_type()) == 8;
    if (!is(Fault::weights_truncated) || !has_codes) return HostContext::narrow(scores);
    for (int r = 0; r < scores.rows; ++r)
        for (int c = 0; c < scores.cols; ++c)
            scores.row(r)[c] = truncated(scores.row(r)[c] / weight_unit(), weight_type());
    return scores;
}

void FaultyContext::store(const kernels::Matrix& target, const FloatTile& tile, std::int64_t row0,
                          std::int64_t col0) const {
    kernels::Matrix matrix = target;
    if (is(Fault::output_unwritten))
        matrix.rows.written = std::min(matrix.rows.written, matrix.rows.size - 1);
    HostContext::store(matrix, tile, row0, col0);
    const bool last_block = item_.b == args_->shape.batch - 1 && item_.h == args_->shape.nhead_q - 1 &&
                            row0 + tile.rows >= matrix.rows.size && col0 + tile.cols >= matrix.cols.size;
    if (is(Fault::write_past_end) && last_block) {
        const float one = 1.0F;
        write_line(&one, matrix.tensor, matrix.offset(matrix.rows.size - 1, matrix.cols.size), 1, 1);
    }
}

} // namespace fmha::host_target
