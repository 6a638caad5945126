#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

namespace fmha::reference {

/// Memory that begins where a vector register's does. The edges of vectorised loops follow from the address, and some of them round
/// otherwise: with any address equal problems would have unequal results.
template <class T>
struct AlignedMemory {
    using value_type = T;
    static constexpr std::align_val_t alignment{64};

    T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), alignment)); }
    void deallocate(T* at, std::size_t) { ::operator delete(at, alignment); }
    friend bool operator==(const AlignedMemory&, const AlignedMemory&) = default;
};

/// One value a row.
template <class T>
class Column {
  public:
    Column() = default;
    Column(std::int64_t rows, T value) : values_(static_cast<std::size_t>(rows), value) {}

    std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }
    T& operator()(std::int64_t row) { return values_[static_cast<std::size_t>(row)]; }
    T operator()(std::int64_t row) const { return values_[static_cast<std::size_t>(row)]; }
    T* data() { return values_.data(); }
    std::span<const T> values() const { return values_; }
    friend bool operator==(const Column&, const Column&) = default;

  private:
    std::vector<T> values_;
};

/// One value a row and channel, rows one after another.
class Table {
  public:
    Table() = default;
    Table(std::int64_t rows, std::int64_t cols)
        : rows_(rows), cols_(cols), values_(static_cast<std::size_t>(rows * cols)) {}

    std::int64_t rows() const { return rows_; }
    std::int64_t cols() const { return cols_; }
    double& operator()(std::int64_t row, std::int64_t c) {
        return values_[static_cast<std::size_t>(row * cols_ + c)];
    }
    double operator()(std::int64_t row, std::int64_t c) const {
        return values_[static_cast<std::size_t>(row * cols_ + c)];
    }
    double* data() { return values_.data(); }
    std::span<double> row(std::int64_t row) { return std::span(values_).subspan(begin_of(row), width()); }
    std::span<const double> row(std::int64_t row) const {
        return std::span(values_).subspan(begin_of(row), width());
    }
    std::span<const double> values() const { return values_; }
    friend bool operator==(const Table&, const Table&) = default;

  private:
    std::size_t begin_of(std::int64_t row) const { return static_cast<std::size_t>(row * cols_); }
    std::size_t width() const { return static_cast<std::size_t>(cols_); }

    std::int64_t rows_ = 0, cols_ = 0;
    std::vector<double, AlignedMemory<double>> values_;
};

} // namespace fmha::reference
