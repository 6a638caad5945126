#pragma once

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/tensor_view.hpp"
#include "harness/data/storage.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fmha::harness {

/// Strides and allocated extent of one tensor, in elements (L-1, L-2).
struct TensorLayout {
    ElementType type = ElementType::fp32;
    std::int64_t batch_stride = 0, head_stride = 0, row_stride = 0, col_stride = 1;
    /// The allocation: `segments` stretches of `segment_elements`, `segment_stride` apart. One stretch unless
    /// the batch stride was widened to test offsets; between two stretches lies address space without
    /// memory.
    std::int64_t segments = 1, segment_elements = 0, segment_stride = 0;
    /// Stored extents of the axes, and the order in which memory has them: batch, head, row, column unless rows come before
    /// heads (L-3) or columns before rows (column-major V).
    std::int64_t batches = 1, heads = 1, rows = 1, columns = 1;
    bool seq_major = false, transposed = false;
    int axes =
        4; ///< 3: one value a row and no column axis; 2: rows and columns alone; 1: one row; 0: a single value
    std::int64_t lead = 0; ///< bytes, a multiple of eight, from the beginning of a page to the tensor
};

/// The place of a byte that is not as it must be.
struct StrayByte {
    std::int64_t element =
        0;             ///< offset from the tensor's base, in elements; negative or past the end in a guard
    std::string where; ///< "guard before", "guard after" or "between logical elements"
};

/// This machine has not enough memory or address space left for a tensor.
class NoRoomForTensor : public InputError {
  public:
    using InputError::InputError;
};

/// The memory of one tensor: every stretch has a guard zone of at least a page on both sides; beyond the
/// guards there is no memory at all, so that a far stray access ends the process that runs the case.
class GuardedTensor {
  public:
    GuardedTensor() = default;
    /// Throws NoRoomForTensor.
    explicit GuardedTensor(const TensorLayout& layout);
    GuardedTensor(const GuardedTensor&) = delete;
    GuardedTensor& operator=(const GuardedTensor&) = delete;
    GuardedTensor(GuardedTensor&& other) noexcept { swap(other); }
    GuardedTensor& operator=(GuardedTensor&& other) noexcept {
        swap(other);
        return *this;
    }
    ~GuardedTensor();

    bool present() const { return base_ != nullptr; }
    const TensorLayout& layout() const { return layout_; }
    /// Its data is null where it has no elements, as PyTorch and others give it.
    TensorView view() const;

    /// Fills all memory, guards included.
    void poison(Poison poison);
    std::uint32_t code(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t col) const {
        return load_code(base_, layout_.type, view_offset(b, h, row, col));
    }
    void set_code(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t col, std::uint32_t code) {
        store_code(base_, layout_.type, view_offset(b, h, row, col), code);
    }
    /// The first columns of a row.
    void set_codes(std::int64_t b, std::int64_t h, std::int64_t row, std::span<const std::uint32_t> codes);

    /// All memory, guards included, in ascending order; between two stretches there is none.
    std::vector<std::span<unsigned char>> memory() const;

    /// First place that no longer holds the last poison. Call it after the logical elements were given the
    /// poison back.
    std::optional<StrayByte> first_stray() const;
    /// The same in the guards alone.
    std::optional<StrayByte> first_stray_in_guards() const;
    /// First byte that is not the one of `image`, a copy of all `memory()`.
    std::optional<StrayByte> first_difference(std::span<const unsigned char> image) const;
    /// Puts a copy of all `memory()` back.
    void restore(std::span<const unsigned char> image);
    std::uint32_t poison_code() const { return harness::poison_code(layout_.type, poison_); }
    /// Checksum of all memory, guards included: inputs must not change.
    std::uint64_t checksum() const;

  private:
    struct Region {
        unsigned char* begin = nullptr;
        unsigned char* end = nullptr;
        std::int64_t payload_begin = 0, payload_end = 0; ///< bytes from base
    };
    std::int64_t view_offset(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t col) const {
        return b * layout_.batch_stride + h * layout_.head_stride + row * layout_.row_stride +
               col * layout_.col_stride;
    }
    StrayByte place_of(std::int64_t offset) const;
    void swap(GuardedTensor& other) noexcept;

    TensorLayout layout_;
    Poison poison_ = Poison::nan;
    void* mapping_ = nullptr;
    std::size_t mapping_bytes_ = 0;
    unsigned char* base_ = nullptr;
    std::vector<Region> regions_;
};

} // namespace fmha::harness
