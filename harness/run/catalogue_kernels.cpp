#include "harness/run/catalogue_kernels.hpp"

#include "dispatcher/explain/explain.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/catalog/query/row_filter.hpp"

#include <fmt/format.h>

namespace fmha::harness {

CatalogueKernels::CatalogueKernels(const std::vector<KernelConfig>& configs, KernelNamer namer,
                                   std::shared_ptr<const Target> target, std::uint32_t types)
    : registry_("catalogue", std::move(namer)), dispatcher_(registry_), target_(std::move(target)),
      types_(types) {
    registry_.add(std::span(configs));
}

Candidate CatalogueKernels::candidate(const KernelEntry& entry) const {
    Candidate made = target_->make(entry.config);
    made.name = registry_.name_of(entry);
    return made;
}

Candidate CatalogueKernels::planned(const Problem& problem) const {
    const ExecutionPlan plan = dispatcher_.plan(problem);
    if (!plan.valid()) throw refusal(problem);
    return candidate(*plan.stages().back().kernel);
}

std::vector<Candidate> CatalogueKernels::accepting(const Problem& problem) const {
    const auto snapshot = registry_.snapshot();
    const StageQuery query = make_query(dispatcher_.resolved(problem), problem.signature.family);
    std::vector<Candidate> candidates;
    for (const RankedKernel& ranked : dispatcher_.policy().rank(*snapshot, query))
        if (!target_->cannot_execute(ranked.entry->config)) candidates.push_back(candidate(*ranked.entry));
    if (candidates.empty()) throw refusal(problem);
    return candidates;
}

ProblemRefused CatalogueKernels::refusal(const Problem& problem) const {
    const Explanation explanation = explain(dispatcher_, problem);
    std::optional<Reason> reason;
    for (const StageExplanation& stage : explanation.stages)
        if (!reason && stage.needed && !stage.kernel && !stage.nearest.empty())
            reason = stage.nearest.front().first.reason;
    std::string text = to_text(explanation);
    while (text.ends_with('\n')) text.pop_back();
    return {reason, text};
}

std::unique_ptr<KernelSource> house_kernels(const std::shared_ptr<const Target>& target,
                                            const std::string& where) {
    const std::string& arch = target->arch();
    const auto archs = arch::ArchSet::built_in();
    catalog::Request request;
    request.rules = catalog::RuleSet::house;
    request.targets = {archs.at(arch).name()};
    request.families = catalog::FamilySet::of(KernelFamily::fwd);
    const std::vector<KernelConfig> all = catalog::list(archs, request);
    std::vector<KernelConfig> kept;
    if (where.empty()) {
        kept = all;
    } else {
        catalog::RowFilter filter(where, [](const KernelConfig& config, std::string& name) {
            catalog::append_name(catalog::RuleSet::house, config, name);
        });
        filter.select(all, [&](std::size_t hit) { kept.push_back(all[hit]); });
        if (kept.empty()) throw InputError(fmt::format("--where {}: no kernel of {} is left", where, arch));
    }
    const auto namer = [](const KernelConfig& config) {
        return catalog::name_of(catalog::RuleSet::house, config);
    };
    return std::make_unique<CatalogueKernels>(kept, namer, target,
                                              archs.at(arch).hardware().limits.data_types);
}

} // namespace fmha::harness
