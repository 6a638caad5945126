#pragma once

#include "kernels/generator/listing.hpp"
#include "kernels/generator/unit_rates.hpp"

#include <cstdint>
#include <span>

namespace fmha::generator {

/// Cycles that one wave needs at least for an iteration on a path through a loop, when it has its SIMD for itself: instructions
/// one after another, each wait until its results have arrived, none of them before its latency. On AMD waits
/// count accesses; on NVIDIA scoreboards name them, and instructions say how many cycles the next one has to stay behind.
std::int64_t wave_cycles(std::span<const Instruction> path, const ArchName& arch, const UnitRates& rates);

} // namespace fmha::generator
