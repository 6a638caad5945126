#include "dispatcher/registry/catalogue.hpp"

#include <map>

namespace fmha {

namespace {

catalog::Request request_for(catalog::RuleSet rules, std::string_view arch) {
    catalog::Request request;
    request.rules = rules;
    request.targets = {ArchName(arch)};
    return request;
}

} // namespace

std::vector<KernelConfig> catalogue_of(const arch::ArchSet& archs, catalog::RuleSet rules,
                                       std::string_view arch) {
    std::vector<KernelConfig> configs = catalog::list(archs, request_for(rules, arch));
    for (KernelConfig& config : configs) config.arch = arch;
    return configs;
}

std::unique_ptr<Registry> catalogue_registry(const arch::ArchSet& archs, catalog::RuleSet rules,
                                             std::span<const ArchName> names) {
    // Names of rule set ck end in the architecture group, which depends on the family.
    std::map<std::pair<ArchName, KernelFamily>, ArchName> groups;
    std::vector<KernelEntry> entries;
    for (const ArchName& name : names)
        catalog::enumerate(archs, request_for(rules, name), [&](const KernelConfig& config) {
            groups.try_emplace({name, config.signature.family}, config.arch);
            entries.push_back({config, nullptr, Priority::normal});
            entries.back().config.arch = name;
        });
    auto registry = std::make_unique<Registry>(
        std::string(to_string(rules)), [rules, groups = std::move(groups)](const KernelConfig& config) {
            KernelConfig listed = config;
            const auto group = groups.find({config.arch, config.signature.family});
            if (group != groups.end()) listed.arch = group->second;
            return catalog::name_of(rules, listed);
        });
    registry->add(std::move(entries));
    return registry;
}

std::vector<Device> devices_of(const arch::ArchSet& archs) {
    std::vector<Device> devices;
    for (const arch::ArchTables& tables : archs.all())
        devices.push_back(
            {tables.name(), tables.hardware().limits.compute_units, tables.hardware().wave_size});
    return devices;
}

} // namespace fmha
