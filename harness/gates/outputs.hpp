#pragma once

#include "dispatcher/types/element.hpp"
#include "harness/data/storage.hpp"
#include "harness/gates/axis.hpp"
#include "reference/rows.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::harness {

/// The logical rows of one or more outputs, in logical order: entries outermost, then heads, then positions. `i` of a row is
/// a query or a key, as `axis` says.
class OutputRows {
  public:
    /// Throws Error for ids that do not ascend.
    OutputRows(Axis axis, std::vector<reference::RowId> ids);

    Axis axis() const { return axis_; }
    std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }
    const std::vector<reference::RowId>& ids() const { return ids_; }
    const reference::RowId& id(std::int64_t row) const { return ids_[static_cast<std::size_t>(row)]; }
    /// Position of a row; Error where the output has no such row.
    std::int64_t index(const reference::RowId& id) const;
    /// "b0 h1 row 5".
    std::string place(const reference::RowId& id) const;

  private:
    Axis axis_;
    std::vector<reference::RowId> ids_;
};

/// A copy of everything that a kernel had to write, in logical order, free of layout and padding: the gates read it, and
/// two runs are compared by it.
class Outputs {
  public:
    /// One output: the stored bits of each logical row. Rows may differ in their number of columns.
    class Tensor {
      public:
        Tensor(std::string name, ElementType type, std::shared_ptr<const OutputRows> rows, Axis columns);

        /// Copies the next row; `code(c)` gives the stored bits of column c.
        template <class Code>
        void append_row(std::int64_t columns, Code code) {
            const std::int64_t begin = begin_.back();
            // Rows are mostly of one length; growing by doubling would take twice the memory.
            if (begin_.size() == 1) {
                begin_.reserve(static_cast<std::size_t>(rows_->size()) + 1);
                codes_.reserve(static_cast<std::size_t>(element_bytes(type_, columns * rows_->size())));
            }
            begin_.push_back(begin + columns);
            codes_.resize(static_cast<std::size_t>(element_bytes(type_, begin + columns)));
            for (std::int64_t c = 0; c < columns; ++c) store_code(codes_.data(), type_, begin + c, code(c));
        }

        const std::string& name() const { return name_; }
        ElementType type() const { return type_; }
        const OutputRows& rows() const { return *rows_; }
        Axis column_axis() const { return column_axis_; }
        std::int64_t columns(std::int64_t row) const { return begin_of(row + 1) - begin_of(row); }
        std::uint32_t code(std::int64_t row, std::int64_t c) const {
            return load_code(codes_.data(), type_, begin_of(row) + c);
        }
        double value(std::int64_t row, std::int64_t c) const;
        /// The rows of heads 0 … heads − 1, of which there are none without rows.
        std::int64_t heads() const { return rows_->ids().empty() ? 0 : rows_->ids().back().h + 1; }
        /// Row `order[n]` as row n of `rows`.
        Tensor reordered(std::shared_ptr<const OutputRows> rows,
                         const std::vector<std::int64_t>& order) const;
        /// Every element is a zero of either sign.
        bool all_zero() const;
        /// First bit in which two copies differ, as "o at b0 h1 row 5 column 3: 0x3c01 and 0x3c00"; empty when they are equal.
        std::string first_difference(const Tensor& other) const;

      private:
        std::int64_t begin_of(std::int64_t row) const { return begin_[static_cast<std::size_t>(row)]; }

        std::string name_;
        ElementType type_;
        std::shared_ptr<const OutputRows> rows_;
        Axis column_axis_;
        std::vector<std::int64_t> begin_{0}; ///< first element of each row, and the end
        std::vector<unsigned char> codes_;
    };

    /// A new, empty output, to be filled with as many rows as `rows` has. The reference is valid until the next call.
    Tensor& add(std::string name, ElementType type, std::shared_ptr<const OutputRows> rows, Axis columns);

    /// Does nothing when there is no such output.
    void remove(std::string_view name);

    /// The same rows by other names, of which none are equal: `name(id, heads)` for each row of a tensor with so many heads.
    Outputs renamed(const std::function<reference::RowId(const reference::RowId&, std::int64_t)>& name) const;

    const std::vector<Tensor>& tensors() const { return tensors_; }
    /// nullptr when there is no such output.
    const Tensor* find(std::string_view name) const;
    /// Throws Error when there is no such output.
    const Tensor& at(std::string_view name) const;

    /// The first tensor's first difference between two runs of the same problem, among tensors whose names `compared` takes;
    /// empty when they are identical.
    std::string first_difference(
        const Outputs& other,
        const std::function<bool(const std::string&)>& compared = [](const auto&) { return true; }) const;

  private:
    std::vector<Tensor> tensors_;
};

} // namespace fmha::harness
