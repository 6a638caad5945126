#pragma once

#include "kernels/generator/selection.hpp"
#include "tests/catalog/working_list.hpp"

#include <vector>

namespace fmha::generator::test {

inline std::vector<KernelConfig> house_fwd(std::string_view arch) {
    return catalog::test::working_list(arch, KernelFamily::fwd);
}

inline std::vector<NamedKernel> with_names(std::span<const KernelConfig> configs) {
    std::vector<NamedKernel> kernels;
    for (const KernelConfig& config : configs) kernels.push_back(named(config));
    return kernels;
}

} // namespace fmha::generator::test
