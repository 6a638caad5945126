#pragma once

#include "dispatcher/types/element_type.hpp"

#include <cstddef>
#include <vector>

namespace fmha::hip_target {

/// One product of a warp group on the host, D[rows × columns] += A · B, from matrices whose elements are decoded.
class GroupModel {
  public:
    static constexpr int rows = 64;

    /// For operands of `type`, which have 8 or 16 bits.
    GroupModel(ElementType type, int columns);

    int depth() const { return depth_; }
    int columns() const { return columns_; }
    double& a(int row, int k) { return a_[place(row, depth_, k)]; }
    double& b(int k, int column) { return b_[place(k, columns_, column)]; }

    /// `d` is stored by rows. Products of 16 bits are exact, their sum and D are added in binary64 and rounded to fp32. Those of 8 bits
    /// and D are aligned to the largest of them, keep 13 bits behind its first one and lose the others, and so does the sum. No public
    /// document says so; measurements of H100 do (tolerances B.1, u_a = 2^-13).
    void multiply(std::vector<float>& d, bool accumulate) const;

  private:
    static std::size_t place(int line, int length, int at) {
        return static_cast<std::size_t>(line) * static_cast<std::size_t>(length) +
               static_cast<std::size_t>(at);
    }
    template <std::size_t width>
    void multiply_columns(float* d, const double* a, const double* b) const;
    template <std::size_t width>
    void multiply_columns_short(float* d, const double* a, const double* b) const;
    double plain_sum(double before, const double* a, const double* b) const;

    int depth_, columns_;
    bool short_sums_;
    std::vector<double> a_, b_;
};

} // namespace fmha::hip_target
