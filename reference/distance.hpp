#pragma once

#include "reference/bounds.hpp"

#include <cmath>

// How far two results are apart; not for the oracles, which compare nothing.
namespace fmha::reference {

constexpr double square(double x) {
    return x * x;
}

/// |x − y| in units of `limit`; equal values, infinities included, are at distance 0 and NaN is infinitely far.
inline double distance(double x, double y, double limit) {
    if (x == y) return 0.0;
    const double ratio = std::abs(x - y) / limit;
    return std::isnan(ratio) ? infinity : ratio;
}

} // namespace fmha::reference
