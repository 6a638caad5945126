#pragma once

#include "dispatcher/types/tensor_view.hpp"

#include <Eigen/Core>

#include <cstdint>

namespace fmha::reference::matrix {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Block = Eigen::Ref<Matrix, 0, Eigen::OuterStride<>>;
using ConstBlock = Eigen::Ref<const Matrix, 0, Eigen::OuterStride<>>;

/// Decodes view(b, h, first_row + r, first_col + c) into out(r, c) (semantics 2.1), by the bits of the
/// encoding and tables, not by the formula of the formats.
void decode_block(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t first_row,
                  std::int64_t first_col, Block out);

/// One element.
double decode_element(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t row,
                      std::int64_t col);

} // namespace fmha::reference::matrix
