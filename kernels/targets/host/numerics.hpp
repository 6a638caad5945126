#pragma once

#include "kernels/targets/numerics.hpp"
#include "kernels/targets/with_program.hpp"

namespace fmha::host_target {

/// Declared arithmetic of `config` on the host target: decoded operands are exact in fp32, sums are IEEE fp32.
inline Numerics numerics_of(const KernelConfig& config) {
    return targets::has_products(config.signature.family) ? targets::storage_numerics(config)
                                                          : targets::row_numerics(config);
}

} // namespace fmha::host_target
