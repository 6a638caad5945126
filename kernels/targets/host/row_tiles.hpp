#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/kernel_instance.hpp"

#include <compare>
#include <cstdint>
#include <span>

/// Parts of launches, for problems that are too large to compute whole.
namespace fmha::host_target {

/// A row of forward's output: entry, query head, row of the entry's sequence.
struct QueryRow {
    std::int64_t b = 0, h = 0, i = 0;
    friend auto operator<=>(const QueryRow&, const QueryRow&) = default;
};

/// Whether `run_row_tiles` takes the kernel: one of forward attention.
bool has_row_tiles(const KernelConfig& config);

/// The query heads of which one block may store rows: a power of two, more than 1 where a kernel packs heads.
std::int64_t most_heads_of_row_tile(const KernelConfig& config);

/// Runs the blocks of a launch that store some of `rows`, all channels of them, and no others. They store the values that `run_kernel`
/// stores there, bit for bit; everything else stays as it is. `threads`: 0 = as many as the machine has. Throws as
/// `run_kernel` does, and UnsupportedInvocation for a kernel that has no row tiles.
void run_row_tiles(const KernelConfig& config, const Invocation& invocation, std::span<const QueryRow> rows,
                   int threads = 0);

} // namespace fmha::host_target
