#pragma once

#include "dispatcher/types/enums.hpp"

namespace fmha::kernels {

/// How targets run the kernels of a family. A specialisation stands at the foot of its program's file and holds
///
/// - `Args`: the arguments of a launch
/// - `Item`: what one block computes, with a field list
/// - `Grid(config, args)`: the blocks of a launch: `size()`, and the item of block n as `grid[n]`
/// - `rows(config, args, item)`: how many rows of the block's tiles exist; a target may leave the others out
/// - `run(ctx, args, item)`: the program, over any block context
/// - `has_products`: whether it multiplies matrices
///
/// `with_program` (kernels/targets) turns a family that is known at run time into its specialisation.
template <KernelFamily family>
struct Program;

} // namespace fmha::kernels
