#pragma once

#include "dispatcher/types/args.hpp"

namespace fmha::harness {

/// The work that a forward problem asks for, without the excess of a kernel.
struct Work {
    double visible_pairs =
        0.0;            ///< (row, key) pairs that the mask lets through, over all entries and query heads
    double flops = 0.0; ///< 2·pairs·hdim_q for QKᵀ and 2·pairs·hdim_v for PV; nothing for the softmax
    double bytes = 0.0; ///< every input element that has a row or key read once, every output written once
};

/// `args` with lengths in host memory; tensors are not looked at.
Work work_of(const FwdArgs& args);

} // namespace fmha::harness
