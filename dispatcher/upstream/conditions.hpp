#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/upstream/problem.hpp"

namespace fmha::upstream {

/// Whether upstream's generated condition for this kernel holds, the preference for tiles apart.
bool accepts(const KernelConfig& kernel, const Problem& problem);

/// Forward only: upstream keeps a tile that is neither the bucket's largest nor of 64 rows for problems that
/// fit into one tile.
bool tile_is_preferred(const KernelConfig& kernel, std::int64_t largest_m0, const Problem& problem);

} // namespace fmha::upstream
