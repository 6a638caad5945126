#include "harness/catalogue/listed_kernels.hpp"

#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/types/error.hpp"
#include "harness/cases/case_problem.hpp"
#include "harness/families/family.hpp"
#include "kernels/arch/arch.hpp"
#include "kernels/catalog/catalog.hpp"

#include <fmt/format.h>

namespace fmha::harness {

ListedKernels::ListedKernels(std::span<const ListedKernel> list, std::span<const Witness> all,
                             std::span<const Witness> asked, std::shared_ptr<const Target> target)
    : list_(list), target_(std::move(target)), others_("list"),
      dispatcher_(others_, devices_of(target_->archs())) {
    std::vector<KernelConfig> others;
    for (const Witness& witness : all) {
        if (witness.of.expect != Expectation::pass || stages_of(witness.of.family).size() == 1) continue;
        for (const std::size_t position : witness.kernels) {
            const KernelConfig& config = list_[position].config;
            if (!target_->cannot_execute(config) && positions_.emplace(config, position).second)
                others.push_back(config);
        }
    }
    others_.add(std::span<const KernelConfig>(others));
    for (const Witness& witness : asked) {
        if (witness.of.expect == Expectation::invalid_problem) continue; // no stage is asked for
        const Problem problem = to_problem(witness.of, target_->arch());
        const Family& family = family_of(witness.of.family);
        std::map<Problem, std::vector<std::size_t>> own;
        for (const std::size_t position : witness.kernels) {
            const KernelFamily stage = list_[position].config.signature.family;
            own[family.problem_of(stage, problem, witness.of)].push_back(position);
        }
        for (auto& [stage, positions] : own)
            if (!witnessed_.emplace(stage, std::move(positions)).second)
                throw Error(fmt::format("two witnesses have the problem {}", stage.to_string()));
    }
}

StageKernel ListedKernels::stage_kernel(std::size_t position) const {
    const ListedKernel& kernel = list_[position];
    StageKernel made;
    if (const auto reason = target_->cannot_execute(kernel.config))
        made.not_built = *reason;
    else
        made = target_->make(kernel.config);
    made.name = kernel.name;
    return made;
}

StageKernel ListedKernels::planned(const Problem& problem, const KernelConfig* main) const {
    const auto snapshot = others_.snapshot();
    const Problem full = dispatcher_.resolved(problem);
    StageQuery query = make_query(full, full.signature.family);
    if (main != nullptr) follow_main(query, *main);
    const KernelEntry* entry = dispatcher_.policy().select(*snapshot, query);
    if (entry == nullptr)
        throw ProblemRefused(std::nullopt, fmt::format("no kernel of the list takes the stage {} of {}",
                                                       to_string(full.signature.family), full.to_string()));
    return stage_kernel(positions_.at(entry->config));
}

std::vector<StageKernel> ListedKernels::accepting(const Problem& problem, const KernelConfig* main) const {
    std::vector<StageKernel> kernels;
    const auto found = witnessed_.find(problem);
    if (found == witnessed_.end()) return kernels;
    const Problem full = dispatcher_.resolved(problem);
    StageQuery query = make_query(full, full.signature.family);
    // Lists have stages whose head dimensions no main kernel has; they run all the same.
    query.main_tile_m0 = main != nullptr ? main->algorithm.tile.m0 : combined_tile_rows;
    for (const std::size_t position : found->second) {
        const ListedKernel& kernel = list_[position];
        if (const Verdict verdict = match(query, kernel.config); !verdict) {
            const fmha::Refusal refusal = describe(verdict, full, kernel.config);
            throw ProblemRefused(refusal, fmt::format("{}: {}", kernel.name, refusal.sentence));
        }
        kernels.push_back(stage_kernel(position));
    }
    return kernels;
}

} // namespace fmha::harness
