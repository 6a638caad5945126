#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fmha::regression {

/// Of one value or more. The mean of the two middle ones where their number is even.
inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

} // namespace fmha::regression
