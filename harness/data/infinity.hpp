#pragma once

#include <limits>

namespace fmha::harness {

/// The LSE of a row that sees no key is minus this, and so is a score that counts for nothing.
inline constexpr double infinity = std::numeric_limits<double>::infinity();

} // namespace fmha::harness
