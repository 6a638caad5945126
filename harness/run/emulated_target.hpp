#pragma once

#include "harness/run/targets.hpp"

namespace fmha::harness {

/// The HIP target's kernels, lane by lane on the processor; the usual architecture when the options name none.
std::shared_ptr<const Target> make_emulated_target(const TargetOptions& options);

} // namespace fmha::harness
