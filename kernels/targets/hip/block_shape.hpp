#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "kernels/targets/hip/plan_types.hpp"

namespace fmha::hip_target {

/// The threads and the LDS of a kernel's blocks. Throws UnsupportedInvocation for a family that no GPU runs.
BlockShape block_shape(const KernelConfig& config);

} // namespace fmha::hip_target
