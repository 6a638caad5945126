#include "harness/run/listed_tiles.hpp"

#include "harness/run/catalogue_kernels.hpp"

namespace fmha::harness {

void count_tile(const KernelConfig& kernel, TileCounts& counts) {
    const Tile& tile = kernel.algorithm.tile;
    ++counts[{kernel.signature.family, tile.m0, tile.n0}];
}

TileCounts house_tiles_of(const std::string& arch, const arch::ArchSet& archs, catalog::FamilySet families) {
    TileCounts counts;
    catalog::enumerate(archs, working_list(arch, archs, families),
                       [&](const KernelConfig& kernel) { count_tile(kernel, counts); });
    return counts;
}

} // namespace fmha::harness
