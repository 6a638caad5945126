#pragma once

#include "dispatcher/types/args.hpp"
#include "reference/attention_args.hpp"

namespace fmha::harness {

/// The work that a call asks for, without the excess of a kernel.
struct Work {
    double visible_pairs =
        0.0; ///< (row, key) pairs that the mask lets through, over all entries and query heads
    /// Of attention 2·pairs·hdim_q for QKᵀ and 2·pairs·hdim_v for PV; nothing for the softmax.
    double flops = 0.0;
    /// Every input element that has a row or key of an entry read once for it, every output written once.
    double bytes = 0.0;
};

/// `args` with lengths and lists of pages in host memory; tensors are not looked at.
Work work_of(const reference::AttentionArgs& args);

/// Of the five products of backward, 2·pairs·(3·hdim_q + 2·hdim_v); dK and dV are written for every query head. Recomputed weights
/// are among the products, partial sums of dQ not among the bytes.
Work work_of(const BwdArgs& args);

/// Of appending to a cache: new keys and values read and written once, queries that are rotated as well, and a row of either
/// table for every new key. A rotated channel takes 3 floating-point operations, a copied one none.
Work work_of(const AppendKvArgs& args);

} // namespace fmha::harness
