#pragma once

#include "kernels/targets/host/vec.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace fmha::host_target {

/// Columns of one packed panel of a right-hand operand: two vector registers.
inline constexpr int panel_columns = 2 * vec_lanes;

constexpr int round_up(int n, int granule) {
    return (n + granule - 1) / granule * granule;
}

/// Memory of one thread's tiles, aligned to cache lines and zeroed.
template <class T>
class Scratch {
  public:
    explicit Scratch(std::size_t count)
        : data_(static_cast<T*>(::operator new (sizeof(T) * (count + 64), std::align_val_t{64}))) {
        std::memset(static_cast<void*>(data_.get()), 0, sizeof(T) * (count + 64));
    }
    T* get() const { return data_.get(); }

  private:
    struct Free {
        void operator()(T* data) const { ::operator delete (data, std::align_val_t{64}); }
    };
    std::unique_ptr<T, Free> data_;
};

/// A dense row-major tile of fp32 (or bytes). The stride is a multiple of `panel_columns`; columns beyond
/// `cols` hold anything finite.
template <class T>
struct TileOf {
    T* data = nullptr;
    int rows = 0, cols = 0, stride = 0;

    T* row(int r) const { return data + static_cast<std::ptrdiff_t>(r) * stride; }
};
using FloatTile = TileOf<float>;
using ByteTile = TileOf<std::uint8_t>;

/// One value per row of a block.
struct Rows {
    float* data = nullptr;
    int count = 0;
};

/// The right-hand side of a product, depth × cols, in panels of `panel_columns` columns: element (d, c) lies
/// in panel c / panel_columns at d · panel_columns + c mod panel_columns. Columns beyond `cols` are zero.
struct Panels {
    float* data = nullptr;
    int depth = 0, cols = 0;

    float* panel(int index) const {
        return data + static_cast<std::ptrdiff_t>(index) * depth * panel_columns;
    }
    int panel_count() const { return (cols + panel_columns - 1) / panel_columns; }
};

/// acc[r, c] += factor · Σ_d a[r, first + d] · b[d, c] over the depth of `b`, fp32 with one rounding per
/// step. Writes whole panels, so acc's stride must cover b's columns rounded up to panels.
void multiply_add(const FloatTile& acc, const FloatTile& a, int first, const Panels& b, float factor);

} // namespace fmha::host_target
