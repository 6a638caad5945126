#pragma once

#include "dispatcher/types/kernel_config.hpp"

#include <optional>
#include <string>

namespace fmha::targets {

/// The feature of `config` that the attention program of its family lacks, one sentence; nullopt when it has all.
std::optional<std::string> wrong_features(const KernelConfig& config);

} // namespace fmha::targets
