#include "harness/run/catalogue_kernels.hpp"

#include "dispatcher/dispatcher.hpp"
#include "dispatcher/explain/explain.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/families/family.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"
#include "kernels/catalog/query/row_filter.hpp"

#include <fmt/format.h>

namespace fmha::harness {
namespace {

/// `namer` gives kernels the names under which reports show them.
class CatalogueKernels final : public KernelSource {
  public:
    /// `families`: those that the list has, whether or not one of `kernels` is of them.
    CatalogueKernels(std::span<const KernelConfig> kernels, KernelNamer namer,
                     std::shared_ptr<const Target> target, catalog::FamilySet families)
        : registry_("catalogue", std::move(namer)), dispatcher_(registry_, devices_of(target->archs())),
          target_(std::move(target)), limits_(target_->archs().at(target_->arch()).hardware().limits),
          families_(families) {
        registry_.add(kernels);
    }

    StageKernel planned(const Problem& problem, const KernelConfig* main) const override;
    std::vector<StageKernel> accepting(const Problem& problem, const KernelConfig* main) const override;
    bool has_type(DataType type) const override { return limits_.has(type); }
    bool has_family(KernelFamily family) const override { return families_.has(family); }

  private:
    StageKernel stage_kernel(const KernelEntry& entry) const;
    StageQuery query_of(const Problem& resolved, const KernelConfig* main) const;
    /// Why no kernel takes the stage: the nearest ones and the features that each lacks.
    ProblemRefused refusal(const Problem& problem) const;

    Registry registry_;
    Dispatcher dispatcher_;
    std::shared_ptr<const Target> target_;
    HardwareLimits limits_;
    catalog::FamilySet families_;
};

StageKernel CatalogueKernels::stage_kernel(const KernelEntry& entry) const {
    StageKernel made = target_->make(entry.config);
    made.name = registry_.name_of(entry);
    return made;
}

StageQuery CatalogueKernels::query_of(const Problem& resolved, const KernelConfig* main) const {
    StageQuery query = make_query(resolved, resolved.signature.family);
    if (main != nullptr) follow_main(query, *main);
    return query;
}

StageKernel CatalogueKernels::planned(const Problem& problem, const KernelConfig* main) const {
    const auto snapshot = registry_.snapshot();
    const Problem full = dispatcher_.resolved(problem);
    const KernelEntry* entry = dispatcher_.policy().select(*snapshot, query_of(full, main));
    if (entry == nullptr) throw refusal(problem);
    return stage_kernel(*entry);
}

std::vector<StageKernel> CatalogueKernels::accepting(const Problem& problem, const KernelConfig* main) const {
    const auto snapshot = registry_.snapshot();
    const Problem full = dispatcher_.resolved(problem);
    std::vector<StageKernel> kernels;
    for (const RankedKernel& ranked : dispatcher_.policy().rank(*snapshot, query_of(full, main)))
        if (!target_->cannot_execute(ranked.entry->config)) kernels.push_back(stage_kernel(*ranked.entry));
    if (kernels.empty()) throw refusal(problem);
    return kernels;
}

ProblemRefused CatalogueKernels::refusal(const Problem& problem) const {
    const Explanation explanation = explain(dispatcher_, dispatcher_.resolved(problem));
    std::optional<fmha::Refusal> nearest;
    for (const StageExplanation& stage : explanation.stages)
        if (stage.family == problem.signature.family && !stage.kernel && !stage.nearest.empty())
            nearest = stage.nearest.front().first;
    std::string text = to_text(explanation);
    while (text.ends_with('\n')) text.pop_back();
    return {std::move(nearest), text};
}

catalog::FamilySet families_in(std::span<const KernelConfig> kernels) {
    catalog::FamilySet families = catalog::FamilySet::none();
    for (const KernelConfig& kernel : kernels) families.add(kernel.signature.family);
    return families;
}

} // namespace

catalog::Request working_list(const std::string& arch, const arch::ArchSet& archs,
                              catalog::FamilySet families) {
    catalog::Request request;
    request.rules = catalog::RuleSet::house;
    request.targets = {archs.at(arch).name()};
    request.families = families;
    return request;
}

catalog::FamilySet kernel_families_of(std::span<const Case> cases) {
    catalog::FamilySet families = catalog::FamilySet::none();
    const auto add = [&](catalog::FamilySet more) {
        families.bits = static_cast<std::uint16_t>(families.bits | more.bits);
    };
    for (const Case& c : cases) {
        add(catalog::families_of(c.family));
        for (const KernelFamily stage : family_of(c.family).stages(c)) add(catalog::FamilySet::of(stage));
    }
    return cases.empty() ? catalog::families_of(ApiFamily::fwd) : families;
}

std::unique_ptr<KernelSource> house_kernels(const std::shared_ptr<const Target>& target,
                                            const std::string& where, catalog::FamilySet families) {
    const arch::ArchSet archs = target->archs();
    const std::vector<KernelConfig> all = catalog::list(archs, working_list(target->arch(), archs, families));
    std::vector<KernelConfig> kept;
    if (where.empty()) {
        kept = all;
    } else {
        catalog::RowFilter filter(where, [](const KernelConfig& config, std::string& name) {
            catalog::append_name(catalog::RuleSet::house, config, name);
        });
        filter.select(all, [&](std::size_t hit) { kept.push_back(all[hit]); });
        if (kept.empty())
            throw InputError(fmt::format("--where {}: no kernel of {} is left", where, target->arch()));
    }
    const auto namer = [](const KernelConfig& config) {
        return catalog::name_of(catalog::RuleSet::house, config);
    };
    return std::make_unique<CatalogueKernels>(kept, namer, target, families_in(all));
}

std::unique_ptr<KernelSource> listed_kernels(const std::shared_ptr<const Target>& target,
                                             const std::vector<KernelConfig>& kernels, KernelNamer namer) {
    return std::make_unique<CatalogueKernels>(kernels, std::move(namer), target, families_in(kernels));
}

} // namespace fmha::harness
