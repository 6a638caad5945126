#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "reference/forward.hpp"

namespace fmha::harness {

/// What the host target declares about the arithmetic of `config`, in the terms of the reference's bounds.
reference::KernelNumerics host_numerics(const KernelConfig& config);

} // namespace fmha::harness
