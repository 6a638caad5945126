#pragma once

#include "kernels/generator/flow_graph.hpp"
#include "kernels/generator/listing.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fmha::generator {

/// The values of a wave's lanes in a vector register, but for a number that all of them add: that may be another one in every iteration.
using LaneValues = std::vector<std::uint32_t>;

/// For every access of LDS in AMD's `code` the addresses of its lanes: of the first wave of a block, with every lane at work, for every
/// way that control takes. nullopt for other instructions, and where the addresses depend on the way, on memory, or on arithmetic that is
/// not followed: moves, sums, products, shifts and logic of 32-bit integers are.
std::vector<std::optional<LaneValues>> lds_addresses(std::span<const Instruction> code,
                                                     std::span<const Block> blocks, int lanes);

} // namespace fmha::generator
