#pragma once

#include "dispatcher/types/element.hpp"
#include "harness/cases/case.hpp"
#include "harness/data/guarded_tensor.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fmha::harness {

/// One sequence pair (semantics section 4). `start_*` is the row offset of group mode, 0 in batch mode.
struct EntryGeometry {
    std::int64_t seqlen_q = 0, seqlen_k = 0;     ///< logical
    std::int64_t physical_q = 0, physical_k = 0; ///< allocated
    std::int64_t start_q = 0, start_k = 0;
    std::int64_t block_start_q = 0, block_start_k = 0; ///< descale blocks before this entry, group mode
    bool skipped = false;                              ///< by min_seqlen_q (N-5): no output is written
};

/// The extents that the tensors of a case follow from.
struct Geometry {
    std::vector<EntryGeometry> entries;
    ElementTypes types;
    std::int64_t max_seqlen_q = 0, max_seqlen_k = 0; ///< of the logical lengths
    std::int64_t stored_batch = 0;                   ///< 1 in group mode, whose rows are packed
    std::int64_t rows_q = 0, rows_k = 0;             ///< stored rows of a head
    std::int64_t row_keys = 0;                       ///< stored keys in a row of bias or random bytes
    std::int64_t blocks_q = 0, blocks_k = 0;         ///< stored descale blocks of a head
};

/// For an architecture with the given 8-bit flavour. Throws InputError for length lists of the wrong size.
Geometry geometry_of(const Case& c, Fp8Flavour flavour);

/// Keys of a descale block.
std::int64_t keys_of_block(const Case& c);

constexpr std::int64_t blocks_of(std::int64_t length, std::int64_t size) {
    return (length + size - 1) / size;
}

/// Gives strides to [batch, heads, rows, cols], of which group mode has one batch, padded by `stride_padding` between rows,
/// heads and entries (L-2, L-3). Packed fp4 strides are rounded up to whole bytes.
class StrideMaker {
  public:
    explicit StrideMaker(const Case& c) : padding_(c.stride_padding), group_(c.mode == Mode::group) {}
    /// Of a cache and of new keys, whose slots, pages or entries lie one after another in every mode.
    static StrideMaker of_cache(const Case& c) {
        StrideMaker strides(c);
        strides.group_ = false;
        return strides;
    }

    /// `seq_major`: [batch, rows, heads, cols] instead of [batch, heads, rows, cols] (L-3).
    TensorLayout make(ElementType type, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                      std::int64_t cols, bool seq_major) const;
    /// [batch, heads, cols, rows]: what is a row of memory is a channel of the tensor (column-major V).
    TensorLayout make_transposed(ElementType type, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                                 std::int64_t cols, bool seq_major) const;
    /// One number a row, [batch, heads, rows], the rows one element apart (LSE, L-2).
    TensorLayout make_statistic(std::int64_t batch, std::int64_t heads, std::int64_t rows) const;

  private:
    std::int64_t padded(std::int64_t extent, ElementType type) const;

    std::int64_t padding_;
    bool group_;
};

/// A small array without padding: `rows` of `columns` values each, or one row.
TensorLayout array_layout(ElementType type, std::int64_t columns);
TensorLayout array_layout(ElementType type, std::int64_t rows, std::int64_t columns);

/// `layout` with the batch stride that the case asks for. Throws InputError for a stride below one entry.
TensorLayout widened(const Case& c, TensorLayout layout);
/// Throws InputError where the tensor that the case names is none of `strided`, those with a batch stride.
void require_wide_tensor(const Case& c, std::span<const std::string_view> strided);

} // namespace fmha::harness
