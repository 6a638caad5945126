#include "harness/run/catalogue_kernels.hpp"

#include "dispatcher/explain/explain.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/run/host_numerics.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/targets/host/host_target.hpp"

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
    if (!plan.valid()) throw NoKernelFound(refusal(problem));
    return candidate(*plan.stages().back().kernel);
}

std::vector<Candidate> CatalogueKernels::accepting(const Problem& problem) const {
    const auto snapshot = registry_.snapshot();
    const StageQuery query = make_query(dispatcher_.resolved(problem), problem.signature.family);
    std::vector<Candidate> candidates;
    for (const RankedKernel& ranked : dispatcher_.policy().rank(*snapshot, query))
        if (!host_target::cannot_execute(ranked.entry->config))
            candidates.push_back(candidate(*ranked.entry));
    if (candidates.empty()) throw NoKernelFound(refusal(problem));
    return candidates;
}

std::string CatalogueKernels::refusal(const Problem& problem) const {
    std::string text = to_text(explain(dispatcher_, problem));
    while (text.ends_with('\n')) text.pop_back();
    return text;
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
