#pragma once

#include "dispatcher/types/args.hpp"

#include <cstdint>
#include <vector>

namespace fmha::reference {

/// β(i, j) of the table in A-2, not rounded (the kernel's fp32 product is inside the bound of tolerances
/// B.2).
double alibi_bias(const MaskArgs& mask, double slope, std::int64_t seqlen_q, std::int64_t seqlen_k,
                  std::int64_t i, std::int64_t j);

/// The default slopes of A-4 for `heads` heads, rounded to fp32.
std::vector<float> default_alibi_slopes(std::int64_t heads);

} // namespace fmha::reference
