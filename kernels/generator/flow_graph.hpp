#pragma once

#include "kernels/generator/listing.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

/// Basic blocks, loops, and paths through a loop.
namespace fmha::generator {

struct Block {
    std::size_t begin = 0, end = 0; ///< instructions of the function
    std::vector<std::size_t> next;  ///< blocks
};

/// The blocks of a function, in the order of their addresses. Throws InputError for a jump to where no instruction begins.
std::vector<Block> blocks_of(std::span<const Instruction> code, const std::string& where);

/// A loop: a strongly connected part of the blocks. `body` is sorted; `inner` holds the loops that are left of it without the
/// edges that lead to its header.
struct Loop {
    std::size_t header = 0;
    std::vector<std::size_t> body;
    std::vector<Loop> inner;
};

/// The outermost loops of all blocks, those that are nested inside them.
std::vector<Loop> loops_of(std::span<const Block> blocks);

/// The order of paths: the sums of its blocks' weights are compared from the first on, the largest wins.
using Weight = std::array<std::int64_t, 5>;

/// The heaviest path from the header of a loop to an edge back to it, as blocks. Loops inside are passed once.
std::vector<std::size_t>
heaviest_path(std::span<const Block> blocks, const Loop& loop,
              const std::function<Weight(std::size_t block, bool in_inner_loop)>& weight);

} // namespace fmha::generator
