#include "harness/run/planned_kernels.hpp"

#include "dispatcher/dispatcher.hpp"
#include "dispatcher/registry/registry.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"

#include <fmt/format.h>

#include <memory>
#include <unordered_set>

namespace fmha::harness {
namespace {

/// The forward kernel that is planned for a problem among some kernels.
class Planner {
  public:
    // Named as everywhere, so that ties are decided as everywhere.
    explicit Planner(std::span<const KernelConfig> kernels)
        : registry_(
              "generated",
              [](const KernelConfig& config) { return catalog::name_of(catalog::RuleSet::house, config); }),
          dispatcher_(registry_) {
        registry_.add(kernels);
    }
    std::optional<KernelConfig> plan(const Problem& problem) const {
        const ExecutionPlan plan = dispatcher_.plan(problem);
        if (!plan.valid()) return std::nullopt;
        return plan.stages().back().kernel->config;
    }

  private:
    Registry registry_;
    Dispatcher dispatcher_;
};

} // namespace

std::vector<KernelConfig>
planned_kernels(std::span<const KernelConfig> kernels, std::span<const FwdCase> cases,
                const std::string& arch,
                const std::function<std::optional<std::string>(const KernelConfig&)>& declined) {
    std::vector<KernelConfig> accepted;
    for (const KernelConfig& kernel : kernels)
        if (!declined(kernel)) accepted.push_back(kernel);
    const Planner all(kernels);
    const Planner rest(accepted);
    std::unordered_set<KernelConfig, FieldHash> planned;
    for (const FwdCase& c : cases) {
        try {
            const Problem problem = to_problem(c, arch);
            const auto first = all.plan(problem);
            if (!first) continue;
            planned.insert(*first);
            if (!declined(*first)) continue;
            if (const auto second = rest.plan(problem)) planned.insert(*second);
        } catch (const ProblemError&) {
            continue; // the case expects the refusal
        }
    }
    std::vector<KernelConfig> kept;
    for (const KernelConfig& kernel : kernels)
        if (planned.contains(kernel)) kept.push_back(kernel);
    return kept;
}

TilePlanner house_tiles(std::string arch) {
    return [arch = std::move(arch),
            planner = std::shared_ptr<const Planner>()](const FwdCase& c) mutable -> std::optional<Tile> {
        if (c.family != ApiFamily::fwd)
            throw InputError(
                fmt::format("{}: values relative to the planned kernel are for family fwd", c.id));
        if (!planner) {
            const auto archs = arch::ArchSet::built_in();
            catalog::Request request;
            request.rules = catalog::RuleSet::house;
            request.targets = {archs.at(arch).name()};
            request.families = catalog::FamilySet::of(KernelFamily::fwd);
            planner = std::make_shared<const Planner>(catalog::list(archs, request));
        }
        try {
            const auto kernel = planner->plan(to_problem(c, arch));
            return kernel ? std::optional(kernel->algorithm.tile) : std::nullopt;
        } catch (const ProblemError&) {
            return std::nullopt; // the case expects the refusal
        }
    };
}

} // namespace fmha::harness
