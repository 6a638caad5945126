#include "dispatcher/registry/kernel_names.hpp"

#include "kernels/catalog/glob.hpp"

namespace fmha {

KernelNames::KernelNames(const Registry& registry) {
    for (const KernelEntry& entry : registry.get_all())
        names_.emplace_back(registry.name_of(entry), identifier(entry.config));
}

std::vector<std::string> KernelNames::identifiers(const std::string& name) const {
    std::vector<std::string> found;
    for (const auto& [known, identifier] : names_)
        if (catalog::glob_match(name, known)) found.push_back(identifier);
    return found;
}

} // namespace fmha
