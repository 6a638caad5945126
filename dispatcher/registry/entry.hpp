#pragma once

#include "dispatcher/types/kernel_instance.hpp"

#include <memory>

namespace fmha {

/// One kernel of a registry: its configuration, and the callable that runs it where there is one. A catalogue
/// is registered as configurations alone.
struct KernelEntry {
    KernelConfig config;
    std::shared_ptr<const KernelInstance> instance; ///< null = known, but not built
    Priority priority = Priority::normal;
};

} // namespace fmha
