#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

/// Rows, columns and tables of results as lists of numbers.
namespace fmha::reference::test {

inline bool has_nan(std::span<const double> values) {
    return std::ranges::any_of(values, [](double x) { return std::isnan(x); });
}

/// The largest |x − y| / (|x| + floor); 0 of no numbers.
inline double relative_difference(std::span<const double> x, std::span<const double> y, double floor) {
    EXPECT_EQ(x.size(), y.size());
    double largest = 0.0;
    for (std::size_t n = 0; n < x.size(); ++n)
        largest = std::max(largest, std::abs(x[n] - y[n]) / (std::abs(x[n]) + floor));
    return largest;
}

/// √Σx².
inline double norm(std::span<const double> values) {
    double squares = 0.0;
    for (const double x : values) squares += x * x;
    return std::sqrt(squares);
}

/// The norm of the difference.
inline double distance(std::span<const double> x, std::span<const double> y) {
    EXPECT_EQ(x.size(), y.size());
    double squares = 0.0;
    for (std::size_t n = 0; n < x.size(); ++n) squares += (x[n] - y[n]) * (x[n] - y[n]);
    return std::sqrt(squares);
}

} // namespace fmha::reference::test
