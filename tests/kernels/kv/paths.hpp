#pragma once

#include "dispatcher/types/kernel_config.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace fmha::test {

/// The facts that decide the way of a kernel's products and of its copies.
using Path = std::tuple<DataType, Pipeline, GemmTriples, bool>;
inline Path path_of(const KernelConfig& kernel) {
    const Algorithm& a = kernel.algorithm;
    return {kernel.signature.data_type, a.pipeline, a.warp, a.use_trload};
}

inline std::set<Path> paths_of(const std::vector<KernelConfig>& kernels) {
    std::set<Path> paths;
    for (const KernelConfig& kernel : kernels) paths.insert(path_of(kernel));
    return paths;
}

/// Adds a kernel of every path of `list` that no chosen one has: one of those with the smallest tile, with other features for
/// every path.
inline void add_missing_paths(std::vector<KernelConfig>& chosen, const std::vector<KernelConfig>& list) {
    const auto size = [](const KernelConfig& kernel) {
        const Tile& tile = kernel.algorithm.tile;
        return std::tuple(tile.k0max, tile.m0, tile.n0);
    };
    const std::set<Path> present = paths_of(chosen);
    std::map<Path, std::vector<const KernelConfig*>> missing;
    for (const KernelConfig& kernel : list) {
        if (present.contains(path_of(kernel))) continue;
        auto& smallest = missing[path_of(kernel)];
        if (!smallest.empty() && size(kernel) < size(*smallest.front())) smallest.clear();
        if (smallest.empty() || size(kernel) == size(*smallest.front())) smallest.push_back(&kernel);
    }
    std::size_t turn = 0;
    for (const auto& [path, kernels] : missing) chosen.push_back(*kernels[turn++ * 7919 % kernels.size()]);
}

} // namespace fmha::test
