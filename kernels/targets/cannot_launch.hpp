#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/kernel_config.hpp"

#include <optional>
#include <string>

namespace fmha::targets {

/// nullopt when a kernel of `config` can be launched with `args`; otherwise the reason, one sentence. A
/// feature that the arguments ask for and the kernel lacks is a reason; a ragged length without a padding
/// flag is not, because a launch cannot see it on a GPU either.
std::optional<std::string> cannot_launch(const KernelConfig& config, const FwdArgs& args);

} // namespace fmha::targets
