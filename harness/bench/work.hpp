#pragma once

#include "dispatcher/types/args.hpp"
#include "reference/attention_args.hpp"

namespace fmha::harness {

/// The work that attention in one stage asks for, without the excess of a kernel.
struct Work {
    double visible_pairs =
        0.0;            ///< (row, key) pairs that the mask lets through, over all entries and query heads
    double flops = 0.0; ///< 2·pairs·hdim_q for QKᵀ and 2·pairs·hdim_v for PV; nothing for the softmax
    /// Every input element that has a row or key of an entry read once for it, every output written once.
    double bytes = 0.0;
};

/// `args` with lengths and lists of pages in host memory; tensors are not looked at.
Work work_of(const reference::AttentionArgs& args);

/// Of appending to a cache: new keys and values read and written once, queries that are rotated as well, and a row of either
/// table for every new key. A rotated channel takes 3 floating-point operations, a copied one none.
Work work_of(const AppendKvArgs& args);

} // namespace fmha::harness
