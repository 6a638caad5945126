#pragma once

#include "kernels/targets/numerics.hpp"

namespace fmha::host_target {

/// Declared arithmetic of `config` on the host target: decoded operands are exact in fp32, sums are IEEE fp32.
inline Numerics numerics_of(const KernelConfig& config) {
    return targets::storage_numerics(config);
}

} // namespace fmha::host_target
