#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/problem.hpp"

#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

namespace fmha::parity {

/// The lattice of problem sizes that kernels are tried with (parity/witnesses.json). Small on purpose, and committed:
/// a kernel that none of these problems selects is reported as dead.
struct WitnessLattice {
    std::vector<std::int64_t> hdim_offsets;   ///< added to each head dimension of the kernel
    std::vector<std::int64_t> length_offsets; ///< added to one tile of the kernel and to four
    std::vector<std::int64_t> lengths;        ///< lengths that suit no tile or every tile
    std::vector<std::pair<std::int64_t, std::int64_t>> batch_heads;
    std::vector<std::int64_t> num_splits;
    std::vector<std::int64_t> kv_pool_bytes;
};

/// Throws InputError that names file and key; a missing or unknown key is an error.
WitnessLattice read_lattice(const std::filesystem::path& file);

/// Calls `visit(problem)` for the problems of the lattice that ask for exactly the features of `kernel`, and then for
/// those that ask for less (no sink, no skip, …), until it returns false. Problems may be invalid.
void each_witness(const KernelConfig& kernel, const WitnessLattice& lattice,
                  const std::function<bool(const Problem&)>& visit);

} // namespace fmha::parity
