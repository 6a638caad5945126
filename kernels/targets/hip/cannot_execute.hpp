#pragma once

#include "dispatcher/types/kernel_config.hpp"

#include <optional>
#include <string>

namespace fmha::hip_target {

/// nullopt when this target has a kernel for `config`, on its architecture or emulated; otherwise the reason, one
/// sentence.
std::optional<std::string> cannot_execute(const KernelConfig& config);

} // namespace fmha::hip_target
