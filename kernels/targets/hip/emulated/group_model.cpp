#include "kernels/targets/hip/emulated/group_model.hpp"

#include "kernels/targets/hip/descriptor.hpp"
#include "kernels/targets/hip/emulated/line_products.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace fmha::hip_target {
namespace {

constexpr std::size_t narrowest = 8, widest = 32;

/// 2^n for −1022 ≤ n ≤ 1023.
constexpr double power_of_two(std::int64_t n) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52U);
}

/// The place of the last bit that a short sum keeps beside a normal number, as a power of two.
constexpr std::int64_t last_bit(double number) {
    constexpr std::int64_t kept = 13;
    return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(number) >> 52U & 0x7FFU) - 1023 - kept;
}

} // namespace

GroupModel::GroupModel(ElementType type, int columns)
    : depth_(group_depth(type)), columns_(columns), short_sums_(element_bits(type) == 8),
      a_(place(rows, depth_, 0)), b_(place(depth_, columns, 0)) {}

template <std::size_t width>
void GroupModel::multiply_columns(float* d, const double* a, const double* b) const {
    std::array<double, width> sums;
    std::copy_n(d, width, sums.begin());
    add_products<1, width>(sums.data(), a, b, static_cast<std::size_t>(depth_),
                           static_cast<std::size_t>(columns_));
    for (std::size_t j = 0; j < width; ++j) d[j] = static_cast<float>(sums[j]);
}

double GroupModel::plain_sum(double before, const double* a, const double* b) const {
    double sum = 0.0 + before;
    for (int k = 0; k < depth_; ++k, b += columns_) sum += a[k] * *b;
    return sum;
}

template <std::size_t width>
void GroupModel::multiply_columns_short(float* d, const double* a, const double* b) const {
    std::array<double, width> largest, unit, inverse, sums;
    for (std::size_t j = 0; j < width; ++j) {
        const double before = std::abs(static_cast<double>(d[j]));
        largest[j] = before > 0.0 ? before : 0.0; // not if it is NaN
    }
    const double* line = b;
    for (int k = 0; k < depth_; ++k, line += columns_)
        for (std::size_t j = 0; j < width; ++j) {
            const double term = std::abs(a[k] * line[j]);
            largest[j] = largest[j] < term ? term : largest[j];
        }
    // Where all terms are 0, or one is no number, these units mean nothing, and neither does their sum: `plain_sum` has it below.
    for (std::size_t j = 0; j < width; ++j) {
        const std::int64_t last = last_bit(largest[j]);
        unit[j] = power_of_two(last);
        inverse[j] = power_of_two(-last);
        sums[j] = std::trunc(static_cast<double>(d[j]) * inverse[j]) * unit[j];
    }
    line = b;
    for (int k = 0; k < depth_; ++k, line += columns_)
        for (std::size_t j = 0; j < width; ++j) sums[j] += std::trunc(a[k] * line[j] * inverse[j]) * unit[j];
    for (std::size_t j = 0; j < width; ++j) {
        const bool short_sum =
            largest[j] > 0.0 && std::isfinite(largest[j]) && sums[j] != 0.0 && std::isfinite(sums[j]);
        const std::int64_t last = last_bit(sums[j]);
        const double sum = short_sum ? std::trunc(sums[j] * power_of_two(-last)) * power_of_two(last)
                                     : plain_sum(static_cast<double>(d[j]), a, b + j);
        d[j] = static_cast<float>(sum);
    }
}

void GroupModel::multiply(std::vector<float>& d, bool accumulate) const {
    const auto columns = static_cast<std::size_t>(columns_);
    if (!accumulate) d.assign(d.size(), 0.0F);
    for (int row = 0; row < rows; ++row) {
        const double* const a = a_.data() + place(row, depth_, 0);
        float* const line = d.data() + place(row, columns_, 0);
        std::size_t column = 0;
        const auto by = [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
            for (; column + width <= columns; column += width)
                if (short_sums_)
                    multiply_columns_short<width>(line + column, a, b_.data() + column);
                else
                    multiply_columns<width>(line + column, a, b_.data() + column);
        };
        by(std::integral_constant<std::size_t, widest>{});
        by(std::integral_constant<std::size_t, narrowest>{});
    }
}

} // namespace fmha::hip_target
