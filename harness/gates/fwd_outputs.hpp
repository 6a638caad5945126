#pragma once

#include "dispatcher/types/args.hpp"
#include "reference/rows.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace fmha::harness {

/// A copy of everything that a forward kernel had to write, in logical order, free of layout and padding:
/// what the gates read and what two runs are compared by. Random bytes at positions that the mask hides are
/// not outputs (D-7) and are stored as 0.
class FwdOutputs {
  public:
    /// Reads the outputs that `args` points to, host memory.
    explicit FwdOutputs(const FwdArgs& args);

    ElementType o_type() const { return o_type_; }
    bool has_lse() const { return !lse_.empty(); }
    bool has_randval() const { return !randval_.empty(); }
    std::int64_t rows() const { return static_cast<std::int64_t>(row_ids_.size()); }
    const std::vector<reference::RowId>& row_ids() const { return row_ids_; }

    /// Position of a row in this copy.
    std::int64_t row_index(const reference::RowId& row) const;
    std::uint32_t o_code(std::int64_t row, std::int64_t c) const;
    float lse(std::int64_t row) const { return lse_[static_cast<std::size_t>(row)]; }
    std::uint8_t random_byte(std::int64_t row, std::int64_t j) const;

    /// Every O element is a zero of either sign.
    bool all_zero() const;

    /// First bit in which two runs of the same problem differ, as "o at b0 h1 row 5 column 3: 0x3c01 and
    /// 0x3c00"; empty when they are identical.
    std::string first_difference(const FwdOutputs& other) const;

  private:
    ElementType o_type_ = ElementType::fp32;
    std::int64_t columns_ = 0, nhead_ = 0;
    std::vector<reference::RowId> row_ids_;
    std::vector<std::int64_t> first_row_, entry_rows_;  ///< of each entry
    std::vector<std::int64_t> first_byte_, entry_keys_; ///< of randval
    std::vector<unsigned char> o_;
    std::vector<float> lse_;
    std::vector<std::uint8_t> randval_;
};

} // namespace fmha::harness
