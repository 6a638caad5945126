#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "harness/cases/case.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fmha::harness {

/// A kernel of a list, under the name that the list gives it.
struct ListedKernel {
    std::string name;
    KernelConfig config;
};

/// Rows of the query tile that a combine kernel's partial results are taken to come from: its own record states none, and no main
/// kernel runs in its witness.
inline constexpr std::int64_t combined_tile_rows = 64;

/// A case that several kernels of a list compute, or a problem that is to be refused for all of them.
struct Witness {
    Case of;                          ///< with its expected outcome, and the rule or reason for that
    std::vector<std::size_t> kernels; ///< positions in the list, ascending
};

/// Witnesses of all kernels of `list`, each kernel in exactly one. A witness has the kernels' own head dimensions and features;
/// its lengths end inside a tile where the kernels pad, on the edge of one where they do not, and cross two tiles of each
/// of its kernels in both directions (one where a kernel takes no more queries than a tile has). Kernels that are reserved for
/// many rows get as many. A record that a rule forbids has a witness that expects the refusal and names the rule, which follows
/// from the record alone.
std::vector<Witness> witnesses(std::span<const ListedKernel> list);

} // namespace fmha::harness
