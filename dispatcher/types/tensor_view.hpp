#pragma once

#include "dispatcher/types/element_type.hpp"

#include <cstdint>

namespace fmha {

/// A non-owning strided view, indexed (batch, head, row, column); strides are 64-bit element counts (L-1).
/// Rows are sequence positions and columns channels (keys for bias and random bytes; K or V blocks for
/// descales). Broadcasting is a stride of 0, column-major V has row stride 1, group mode has batch stride 0
/// and its entry's start added to the row. `data == nullptr` means absent. Packed fp4 holds element e in
/// byte e/2, low nibble first (T-2).
struct TensorView {
    void* data = nullptr;
    ElementType type = ElementType::fp32;
    std::int64_t batch_stride = 0, head_stride = 0, row_stride = 0, col_stride = 1;

    constexpr bool present() const { return data != nullptr; }
    constexpr std::int64_t offset(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t col) const {
        return b * batch_stride + h * head_stride + row * row_stride + col * col_stride;
    }
};

} // namespace fmha
