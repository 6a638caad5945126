#pragma once

#include "dispatcher/types/kernel_config.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace fmha::generator {

/// Indices of kernels, ascending. Every (architecture, data type, head dimensions, tile, pipeline, layout of V) of the list appears in
/// them, and every pair of values that two fields take together in one kernel of the list (greedy, deterministic). With a limit, the
/// first so many that the greedy choice makes: the first ones cover most.
std::vector<std::size_t> covering_sample(std::span<const KernelConfig> kernels,
                                         std::optional<std::size_t> limit = std::nullopt);

/// The same of each family by itself, with the limit for each, so that the largest do not leave the others out.
std::vector<std::size_t> sample_of_each_family(std::span<const KernelConfig> kernels,
                                               std::optional<std::size_t> limit = std::nullopt);

} // namespace fmha::generator
