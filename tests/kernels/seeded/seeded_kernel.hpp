#pragma once

#include "dispatcher/types/kernel_config.hpp"
#include "dispatcher/types/kernel_instance.hpp"

#include <memory>

namespace fmha::test {

/// The host's kernel of `config`, compiled from the copies that make the mistake of `planted`.
std::shared_ptr<const KernelInstance> seeded_kernel(const KernelConfig& config);

} // namespace fmha::test
