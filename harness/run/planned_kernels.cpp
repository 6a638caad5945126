#include "harness/run/planned_kernels.hpp"

#include "dispatcher/dispatcher.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/registry/registry.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/families/family.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_set>

namespace fmha::harness {
namespace {

/// The kernels that are planned for a problem among some kernels.
class Planner {
  public:
    // Named as everywhere, so that ties are decided as everywhere.
    explicit Planner(std::span<const KernelConfig> kernels, const arch::ArchSet& archs)
        : registry_(
              "generated",
              [](const KernelConfig& config) { return catalog::name_of(catalog::RuleSet::house, config); }),
          dispatcher_(registry_, devices_of(archs)) {
        registry_.add(kernels);
    }
    /// One a stage; none when a stage has none.
    std::vector<KernelConfig> plan(const Problem& asked, const Case& c,
                                   std::span<const KernelFamily> stages) const {
        const Problem problem = dispatcher_.resolved(asked);
        std::vector<KernelConfig> kernels;
        const bool whole = std::ranges::find(stages, main_stage(problem.api_family)) != stages.end();
        const ExecutionPlan plan = whole ? dispatcher_.plan(problem) : ExecutionPlan();
        if (!plan.missing().empty()) return {};
        for (const PlanStage& stage : plan.stages()) kernels.push_back(stage.kernel->config);
        const auto own = stages_of(problem.api_family);
        // Stages that run without the main one, or before it, follow nothing.
        for (const KernelFamily stage : stages) {
            if (whole && std::ranges::find(own, stage) != own.end()) continue;
            const auto kernel = dispatcher_.select_kernel(family_of(c.family).problem_of(stage, problem, c));
            if (kernel == nullptr) return {};
            kernels.push_back(kernel->config);
        }
        return kernels;
    }

  private:
    Registry registry_;
    Dispatcher dispatcher_;
};

} // namespace

std::vector<KernelConfig>
planned_kernels(std::span<const KernelConfig> kernels, std::span<const Case> cases, const std::string& arch,
                const std::function<std::optional<std::string>(const KernelConfig&)>& declined,
                const arch::ArchSet& archs) {
    std::vector<KernelConfig> accepted;
    for (const KernelConfig& kernel : kernels)
        if (!declined(kernel)) accepted.push_back(kernel);
    const Planner all(kernels, archs);
    const Planner rest(accepted, archs);
    std::unordered_set<KernelConfig, FieldHash> planned;
    for (const Case& c : cases) {
        try {
            const Problem problem = to_problem(c, arch);
            const std::vector<KernelFamily> stages = family_of(c.family).stages(c);
            const auto first = all.plan(problem, c, stages);
            planned.insert(first.begin(), first.end());
            if (std::ranges::none_of(first, [&](const KernelConfig& k) { return declined(k).has_value(); }))
                continue;
            const auto second = rest.plan(problem, c, stages);
            planned.insert(second.begin(), second.end());
        } catch (const ProblemError&) {
            continue; // the case expects the refusal
        }
    }
    std::vector<KernelConfig> kept;
    for (const KernelConfig& kernel : kernels)
        if (planned.contains(kernel)) kept.push_back(kernel);
    return kept;
}

TilePlanner house_tiles(std::string arch, arch::ArchSet archs) {
    return [arch = std::move(arch), archs = std::move(archs),
            planners = std::map<ApiFamily, std::shared_ptr<const Planner>>()](
               const Case& c) mutable -> std::optional<Tile> {
        const KernelFamily main = main_stage(c.family);
        const std::vector<KernelFamily> stages = family_of(c.family).stages(c);
        if (std::ranges::find(stages, main) == stages.end())
            throw InputError(fmt::format(
                "{}: values relative to the planned kernel need the stage {}, which the case does not run",
                c.id, to_string(main)));
        std::shared_ptr<const Planner>& planner = planners[c.family];
        if (!planner) {
            const auto request = working_list(arch, archs, catalog::families_of(c.family));
            planner = std::make_shared<const Planner>(catalog::list(archs, request), archs);
        }
        try {
            for (const KernelConfig& kernel : planner->plan(to_problem(c, arch), c, stages_of(c.family)))
                if (kernel.signature.family == main) return kernel.algorithm.tile;
            return std::nullopt;
        } catch (const ProblemError&) {
            return std::nullopt; // the case expects the refusal
        }
    };
}

} // namespace fmha::harness
