#pragma once

#include "dispatcher/types/kernel_config.hpp"

#include <vector>

namespace fmha::test {

/// The kernels of one backward launch.
struct BackwardChain {
    KernelConfig dot, main, convert; ///< convert is used unless main stores dQ itself

    bool direct() const { return main.algorithm.max_seq_len_q > 0; }
};

/// `main` with first and last stages of the same types, head dimensions and padding. Throws Error when the list has none.
BackwardChain chain_of(const KernelConfig& main, const std::vector<KernelConfig>& dots,
                       const std::vector<KernelConfig>& converts);

} // namespace fmha::test
