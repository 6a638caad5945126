#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "kernels/built/loop_model.hpp"
#include "kernels/generator/listing.hpp"

#include <span>
#include <string>
#include <vector>

namespace fmha::generator {

/// The instructions of the plain and of the masked path through a kernel's loop over keys.
struct LoopPaths {
    std::vector<Instruction> plain, masked;
};

/// Finds the loop over keys of `code` by its structure: of the loops that hold matrix instructions and no other such loop, those
/// with most of them, and their paths with the most matrix instructions. The plain path stays out of loops over single elements
/// where it can, moves the most bytes, as iterations do that copy a next tile, and needs the fewest vector instructions. The masked
/// path selects for every score. Accesses of LDS have their conflicts, on AMD. Throws InputError when no loop holds a matrix instruction; `where` names the code.
LoopPaths loop_paths(std::span<const Instruction> code, const ArchName& arch, const std::string& where);

/// The work of one iteration on such a path.
built::LoopIteration iteration_of(std::span<const Instruction> path, const ArchName& arch);

/// The model of a kernel of configuration `config`, of which a SIMD holds `waves` waves. Throws InputError when a path does not
/// have the matrix instructions of a tile.
built::LoopModel loop_model(const LoopPaths& paths, const KernelConfig& config, std::int64_t waves);

} // namespace fmha::generator
