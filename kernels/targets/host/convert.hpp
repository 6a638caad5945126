#pragma once

#include "dispatcher/types/element.hpp"
#include "kernels/programs/matrix.hpp"
#include "kernels/targets/host/tile.hpp"

#include <cstdint>

namespace fmha::host_target {

/// dst[i] = element offset + i·stride of `tensor`, decoded. Strides are in elements; fp4 is packed (T-2).
void read_line(float* dst, const TensorView& tensor, std::int64_t offset, std::int64_t stride, int count);

/// Element offset + i·stride of `tensor` = rd(src[i]) (T-5); any type but fp4, which no output has.
void write_line(const float* src, const TensorView& tensor, std::int64_t offset, std::int64_t stride,
                int count);

/// values[i] = rd(values[i] · factor, type), still fp32; fp32 only multiplies.
void round_line(float* values, int count, float factor, ElementType type);

/// Rounds each run of 32 values to `type` with a power-of-two scale of its own, chosen so that the largest
/// value of the run uses the top binade without saturating; the values keep their magnitude.
void round_line_in_blocks(float* values, int count, ElementType type);

/// dst (rows × cols, row-major, `dst_stride`) = elements [row0, row0 + rows) × [col0, col0 + cols) of
/// `matrix`, scaled by its block scales. Positions that the kernel does not read are 0; positions that it
/// reads although they do not exist (an axis without padding) repeat the last element that does.
void read_block(float* dst, int dst_stride, const kernels::Matrix& matrix, std::int64_t row0,
                std::int64_t col0, int rows, int cols);

/// Which axis of a product's right operand the rows of a matrix number.
enum class RowsAre : std::uint8_t { depth, columns };

/// The same elements, from row `row0` and column `col0` of the matrix on, as panels of depth × cols.
/// `work` has room for depth × cols rounded up to panels.
void read_panels(Panels& dst, float* work, const kernels::Matrix& matrix, std::int64_t row0,
                 std::int64_t col0, int depth, int cols, RowsAre rows);

} // namespace fmha::host_target
