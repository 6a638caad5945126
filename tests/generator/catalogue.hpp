#pragma once

#include "kernels/catalog/catalog.hpp"
#include "kernels/generator/selection.hpp"

#include <vector>

namespace fmha::generator::test {

/// The working list of an architecture.
inline std::vector<KernelConfig> house(std::string_view arch, catalog::FamilySet families) {
    catalog::Request request;
    request.rules = catalog::RuleSet::house;
    request.targets = {ArchName(arch)};
    request.families = families;
    return catalog::list(arch::ArchSet::built_in(), request);
}

inline std::vector<KernelConfig> house_fwd(std::string_view arch) {
    return house(arch, catalog::FamilySet::of(KernelFamily::fwd));
}

inline std::vector<NamedKernel> with_names(std::span<const KernelConfig> configs) {
    std::vector<NamedKernel> kernels;
    for (const KernelConfig& config : configs) kernels.push_back(named(config));
    return kernels;
}

} // namespace fmha::generator::test
