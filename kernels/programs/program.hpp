#pragma once

#include "dispatcher/types/kernel_values.hpp"
#include "kernels/programs/device.hpp"

#include <cstdint>

namespace fmha::kernels {

/// How targets run the kernels of a family. A specialisation stands at the foot of its program's file and holds
///
/// - `Args`: the arguments of a launch
/// - `Item`: the work of one block, with a field list
/// - `Grid(config, args)`: the blocks of a launch: `size()`, and the item of block n as `grid[n]`
/// - `rows(config, args, item)`: how many rows of the block's tiles exist; a target may leave the others out
/// - `run(ctx, args, item)`: the program, over any block context
/// - `has_products`: whether it multiplies matrices
/// - `row_tile(config)`, of a program of row operations alone: the extents of its tiles
///
/// `with_program` (kernels/targets) turns a family that is known at run time into its specialisation.
template <KernelFamily family>
struct Program;

/// The extents of `partial()` and `output()`, and the rows of every row vector.
struct RowTile {
    int rows = 0, columns = 0;
};

/// A program that multiplies no matrices and has no tiles but those. A target that has row operations runs it in a context that all of them share.
template <class Program>
concept RowProgram = requires(const KernelConfig& config) {
    Program::row_tile(config).rows;
};

/// A number of a launch, by one of its extents, and the rest. Both have 32 bits; a division of 64 bits costs a GPU a hundred
/// instructions, before a block has asked for anything.
struct Divided {
    std::int64_t quotient = 0, rest = 0;

    FMHA_DEVICE static constexpr Divided of(std::int64_t n, std::int64_t by) {
        const auto number = static_cast<std::uint32_t>(n), extent = static_cast<std::uint32_t>(by);
        return {number / extent, number % extent};
    }
};

} // namespace fmha::kernels
