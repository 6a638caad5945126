#pragma once

#include "kernels/generator/lane_values.hpp"

#include <string_view>

namespace fmha::generator {

/// Cycles that an access of LDS takes beyond those that its bytes need, because lanes want different words of one bank: as many lanes as the
/// banks have words for are served at a time, in the order of their numbers, and each bank gives a word a cycle. `lane_bytes` is what a lane
/// reads or writes, both parts of "read2" together.
std::int64_t conflict_cycles(const LaneValues& addresses, std::string_view mnemonic, int lane_bytes,
                             int banks);

} // namespace fmha::generator
