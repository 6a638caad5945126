#pragma once

#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace fmha::harness {

/// Kernels of a list by family and tile: its rows and keys, as in KernelTile.
using TileCounts = std::map<std::tuple<KernelFamily, std::int64_t, std::int64_t>, std::int64_t>;

/// Adds `kernel` to `counts`.
void count_tile(const KernelConfig& kernel, TileCounts& counts);

/// Of the kernels of `house` for `arch` in `families`. Throws InputError for an unknown architecture.
TileCounts house_tiles_of(const std::string& arch, const arch::ArchSet& archs, catalog::FamilySet families);

} // namespace fmha::harness
