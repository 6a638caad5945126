#pragma once

#include "kernels/catalog/tables/tables.hpp"

namespace fmha::catalog::ck {

/// Every rule that tables of `ck` may name: forward and key-value families (R…) and backward (B…).
std::span<const tables::Rule> all_rules();

/// The groups of a run in upstream's order: each target's group (the table with the longest matching prefix)
/// once, at the place of its first target, then longest group name first. A target that no table covers
/// throws InputError; for batch prefill, whose list knows no architecture, it empties the list.
std::vector<tables::ForwardGroup> forward_groups(const arch::ArchSet& archs, const Request& request,
                                                 KernelFamily family);
std::vector<tables::BackwardGroup> backward_groups(const arch::ArchSet& archs, const Request& request);

} // namespace fmha::catalog::ck
