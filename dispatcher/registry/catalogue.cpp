#include "dispatcher/registry/catalogue.hpp"

#include "dispatcher/declarations/expand.hpp"
#include "dispatcher/plan/workspace.hpp"

#include <map>

namespace fmha {

namespace {

/// Calls `visit(config, group)` for every kernel of the request and each of its targets: the record carries the
/// target, `group` is the rule set's name for it.
template <class Visit>
void each_kernel(const arch::ArchSet& archs, const catalog::Request& request, Visit&& visit) {
    catalog::Request single = request;
    for (const ArchName& target : request.targets) {
        single.targets = {target};
        catalog::enumerate(archs, single, [&](const KernelConfig& listed) {
            KernelConfig config = listed;
            config.arch = target;
            visit(config, listed.arch);
        });
    }
}

} // namespace

std::unique_ptr<Registry> catalogue_registry(const arch::ArchSet& archs, catalog::RuleSet rules,
                                             std::span<const ArchName> names,
                                             const std::optional<catalog::SweepConfig>& sweep) {
    catalog::Request request;
    request.rules = rules;
    request.targets.assign(names.begin(), names.end());
    request.sweep = sweep;
    // Names of rule set ck end in the architecture group, which depends on the family.
    std::map<std::pair<ArchName, KernelFamily>, ArchName> groups;
    std::vector<KernelEntry> entries;
    each_kernel(archs, request, [&](const KernelConfig& config, const ArchName& group) {
        groups.try_emplace({config.arch, config.signature.family}, group);
        entries.push_back({config, nullptr, Priority::normal});
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

std::size_t add_catalogue(Registry& registry, const arch::ArchSet& archs, const catalog::Request& request,
                          Priority priority) {
    std::vector<KernelEntry> entries;
    each_kernel(archs, request, [&](const KernelConfig& config, const ArchName&) {
        entries.push_back({config, nullptr, priority});
    });
    const std::size_t listed = entries.size();
    registry.add(std::move(entries));
    return listed;
}

std::size_t add_declared(Registry& registry, const arch::ArchSet& archs, const KernelSet& set,
                         Priority priority) {
    const std::vector<KernelConfig> kernels = expand(set, archs).kernels;
    registry.add(kernels, priority);
    return kernels.size();
}

std::vector<Device> devices_of(const arch::ArchSet& archs) {
    std::vector<Device> devices;
    for (const arch::ArchTables& tables : archs.all())
        devices.push_back(
            {tables.name(), tables.hardware().limits.compute_units, tables.hardware().wave_size});
    return devices;
}

std::int64_t splits_on_device(const Problem& problem) {
    if (problem.num_splits >= 1) return problem.num_splits;
    const auto archs = arch::ArchSet::built_in();
    const arch::Hardware& hardware = archs.at(problem.arch.view()).hardware();
    return choose_num_splits(problem, hardware.limits.compute_units, hardware.wave_size);
}

} // namespace fmha
