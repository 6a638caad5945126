#include "harness/run/catalogue_kernels.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/run/host_numerics.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/targets/host/host_target.hpp"

#include <fmt/format.h>

namespace fmha::harness {

CatalogueKernels::CatalogueKernels(const std::vector<KernelConfig>& configs, KernelNamer namer,
                                   MakeCandidate make)
    : registry_("catalogue", std::move(namer)), dispatcher_(registry_), make_(std::move(make)) {
    registry_.add(std::span(configs));
}

Candidate CatalogueKernels::candidate(const KernelEntry& entry) const {
    Candidate made = make_(entry.config);
    made.name = registry_.name_of(entry);
    return made;
}

Candidate CatalogueKernels::planned(const Problem& problem) const {
    const ExecutionPlan plan = dispatcher_.plan(problem);
    if (!plan.valid()) throw NoKernelFound(fmt::format("no kernel takes {}", problem.to_string()));
    return candidate(*plan.stages().back().kernel);
}

std::vector<Candidate> CatalogueKernels::accepting(const Problem& problem) const {
    const auto snapshot = registry_.snapshot();
    const StageQuery query = make_query(dispatcher_.resolved(problem), problem.signature.family);
    std::vector<Candidate> candidates;
    for (const RankedKernel& ranked : dispatcher_.policy().rank(*snapshot, query))
        if (!host_target::cannot_execute(ranked.entry->config))
            candidates.push_back(candidate(*ranked.entry));
    if (candidates.empty()) throw NoKernelFound(fmt::format("no kernel takes {}", problem.to_string()));
    return candidates;
}

std::unique_ptr<KernelSource> house_kernels_on_host(const std::string& arch) {
    const auto archs = arch::ArchSet::built_in();
    catalog::Request request;
    request.rules = catalog::RuleSet::house;
    request.targets = {archs.at(arch).name()};
    request.families = catalog::FamilySet::of(KernelFamily::fwd);
    const auto namer = [](const KernelConfig& config) {
        return catalog::name_of(catalog::RuleSet::house, config);
    };
    return std::make_unique<CatalogueKernels>(
        catalog::list(archs, request), namer, [](const KernelConfig& config) {
            return Candidate{{}, host_target::make_instance(config), host_numerics(config)};
        });
}

} // namespace fmha::harness
