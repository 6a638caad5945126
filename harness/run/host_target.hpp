#pragma once

#include "harness/run/targets.hpp"

namespace fmha::harness {

/// The processor: every configuration of every architecture, of the usual one unless the options say otherwise.
std::shared_ptr<const Target> make_host_target(const TargetOptions& options);

/// Throws InputError when `options` has something that only a target with built kernels takes.
void refuse_device_options(const TargetOptions& options, std::string_view target);

} // namespace fmha::harness
