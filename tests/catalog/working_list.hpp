#pragma once

#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"

#include <string_view>
#include <vector>

namespace fmha::catalog::test {

/// The working list of a built-in architecture: the kernels of `families`, all of them unless named.
inline std::vector<KernelConfig> working_list(std::string_view arch, FamilySet families = {}) {
    Request request;
    request.rules = RuleSet::house;
    request.targets = {ArchName(arch)};
    request.families = families;
    return list(arch::ArchSet::built_in(), request);
}
inline std::vector<KernelConfig> working_list(std::string_view arch, KernelFamily family) {
    return working_list(arch, FamilySet::of(family));
}

} // namespace fmha::catalog::test
