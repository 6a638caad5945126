#include "harness/run/candidate.hpp"

#include "dispatcher/plan/plan.hpp"
#include "harness/results/kernel_names.hpp"
#include "kernels/catalog/glob.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace fmha::harness {
namespace {

bool is_own_stage(ApiFamily api, KernelFamily stage) {
    const auto stages = stages_of(api);
    return std::ranges::find(stages, stage) != stages.end();
}

/// The kernel that decides about the other stages, if the case runs its stage and it is built.
const KernelConfig* config_of(const std::optional<StageKernel>& kernel) {
    return kernel && kernel->instance ? &kernel->instance->config() : nullptr;
}

/// Kernels of a problem's stages, some given and the others planned.
class Composer {
  public:
    Composer(const KernelSource& source, const Family& family, const Case& c, const Problem& problem)
        : source_(source), family_(family), case_(c), problem_(problem), stages_(family.stages(c)),
          main_(main_stage(problem.api_family)) {}

    const std::vector<KernelFamily>& stages() const { return stages_; }

    /// `given`: a kernel for one stage; nullptr plans them all.
    Candidate compose(const StageKernel* given, KernelFamily given_stage) const {
        std::optional<StageKernel> main;
        if (std::ranges::find(stages_, main_) != stages_.end())
            main = given != nullptr && given_stage == main_ ? *given
                                                            : source_.planned(problem_of(main_), nullptr);
        Candidate candidate;
        for (const KernelFamily stage : stages_) {
            const KernelConfig* config = config_of(main);
            if (config != nullptr && !needs_stage(stage, *config)) continue;
            candidate.families.push_back(stage);
            if (given != nullptr && stage == given_stage)
                candidate.stages.push_back(*given);
            else if (stage == main_)
                candidate.stages.push_back(*main);
            else
                candidate.stages.push_back(
                    source_.planned(problem_of(stage), follows_main(stage) ? config : nullptr));
            if (candidate.stages.back().instance == nullptr) break;
        }
        candidate.chosen = given != nullptr ? given->name : candidate.stages.front().name;
        return candidate;
    }

    /// The kernels that may stand in for the planned one of `stage`.
    std::vector<StageKernel> accepting(KernelFamily stage) const {
        if (!follows_main(stage) || std::ranges::find(stages_, main_) == stages_.end())
            return source_.accepting(problem_of(stage), nullptr);
        const StageKernel main = source_.planned(problem_of(main_), nullptr);
        const KernelConfig* config = main.instance ? &main.instance->config() : nullptr;
        if (config != nullptr && !needs_stage(stage, *config)) return {};
        return source_.accepting(problem_of(stage), config);
    }

  private:
    Problem problem_of(KernelFamily stage) const { return family_.problem_of(stage, problem_, case_); }
    bool follows_main(KernelFamily stage) const {
        return stage != main_ && is_own_stage(problem_.api_family, stage);
    }

    const KernelSource& source_;
    const Family& family_;
    const Case& case_;
    const Problem& problem_;
    std::vector<KernelFamily> stages_;
    KernelFamily main_;
};

} // namespace

std::string Candidate::name() const {
    std::vector<std::string_view> names;
    for (const StageKernel& stage : stages) names.emplace_back(stage.name);
    return fmt::format("{}", fmt::join(names, kernel_joint));
}

const StageKernel* Candidate::not_built() const {
    const auto found = std::ranges::find(stages, nullptr, &StageKernel::instance);
    return found == stages.end() ? nullptr : &*found;
}

Candidate planned_candidate(const KernelSource& source, const Family& family, const Case& c,
                            const Problem& problem) {
    const Composer composer(source, family, c, problem);
    return composer.compose(nullptr, composer.stages().front());
}

std::vector<Candidate> all_candidates(const KernelSource& source, const Family& family, const Case& c,
                                      const Problem& problem, const std::string& filter) {
    const Composer composer(source, family, c, problem);
    std::vector<Candidate> candidates;
    std::set<std::string> names;
    for (const KernelFamily stage : composer.stages())
        for (const StageKernel& kernel : composer.accepting(stage)) {
            if (!filter.empty() && !catalog::glob_match(filter, kernel.name)) continue;
            Candidate candidate = composer.compose(&kernel, stage);
            // The planned kernels come up once a stage.
            if (names.insert(candidate.name()).second) candidates.push_back(std::move(candidate));
        }
    return candidates;
}

} // namespace fmha::harness
