#pragma once

#include "dispatcher/types/element_type.hpp"
#include "dispatcher/types/kernel_config.hpp"

namespace fmha::targets {

/// The types in which a kernel's tensors lie in memory, and that of P. The 8-bit flavour follows from its architecture (T-1).
inline ElementTypes stored_types(const KernelConfig& config) {
    return element_types(config.signature.data_type, fp8_flavour(config.arch));
}

} // namespace fmha::targets
