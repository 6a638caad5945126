#pragma once

#include "harness/run/targets.hpp"

namespace fmha::harness {

/// A GPU through HIP, with the kernels that `fmha build` left in a folder. A sentence names the missing part: a plugin, a
/// driver, a device, kernels for its architecture. The device is looked at in a process of its own, because a runtime does
/// not survive a fork.
std::shared_ptr<const Target> make_hip_target(const TargetOptions& options);

} // namespace fmha::harness
