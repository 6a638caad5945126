#include "harness/run/candidate.hpp"

#include "dispatcher/plan/plan.hpp"
#include "kernels/catalog/glob.hpp"

#include <algorithm>

namespace fmha::harness {
namespace {

bool is_own_stage(ApiFamily api, KernelFamily stage) {
    const auto stages = stages_of(api);
    return std::ranges::find(stages, stage) != stages.end();
}

Problem append_before(const Problem& attention, const Rotation& rotation) {
    const Signature& s = attention.signature;
    Problem append;
    append.api_family = ApiFamily::fwd_appendkv;
    append.arch = attention.arch;
    append.signature.family = KernelFamily::fwd_appendkv;
    append.signature.data_type = s.data_type;
    append.signature.hdim_q = s.hdim_q;
    append.signature.hdim_v = s.hdim_v;
    append.signature.v_layout = s.v_layout;
    append.signature.use_paged_kv = s.use_paged_kv;
    append.signature.page_size = s.page_size;
    append.batch = attention.batch;
    append.nhead_q = attention.nhead_q;
    append.nhead_k = attention.nhead_k;
    append.seqlen_k = attention.seqlen_k;
    append.presence = {.seqlen_k = true,
                       .block_table = attention.presence.block_table,
                       .cache_batch_idx = attention.presence.cache_batch_idx};
    if (rotation.rope == Rope::none) return append;
    append.signature.rope = rotation.rope;
    append.rotary_dim = rotation.rotary_dim;
    append.presence.rotary = true;
    append.seqlen_q = attention.seqlen_q;
    return append;
}

/// The kernel that decides about the other stages, if the case runs its stage and it is built.
const KernelConfig* config_of(const std::optional<StageKernel>& kernel) {
    return kernel && kernel->instance ? &kernel->instance->config() : nullptr;
}

/// Kernels of a problem's stages, some given and the others planned.
class Composer {
  public:
    Composer(const KernelSource& source, const Problem& problem, std::span<const KernelFamily> stages,
             const Rotation& rotation)
        : source_(source), problem_(problem), stages_(stages), rotation_(rotation),
          main_(main_stage(problem.api_family)) {}

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
    Problem problem_of(KernelFamily stage) const { return problem_of_stage(problem_, stage, rotation_); }
    bool follows_main(KernelFamily stage) const {
        return stage != main_ && is_own_stage(problem_.api_family, stage);
    }

    const KernelSource& source_;
    const Problem& problem_;
    std::span<const KernelFamily> stages_;
    Rotation rotation_;
    KernelFamily main_;
};

} // namespace

Problem problem_of_stage(Problem problem, KernelFamily stage, const Rotation& rotation) {
    if (stage == KernelFamily::fwd_appendkv && !is_own_stage(problem.api_family, stage))
        return append_before(problem, rotation);
    if (!is_own_stage(problem.api_family, stage)) {
        problem.api_family = ApiFamily::fwd;
        problem.signature.has_lse = true;
        problem.signature.has_dbias = problem.signature.is_deterministic = false;
    }
    problem.signature.family = stage;
    return problem;
}

std::string Candidate::name() const {
    std::string names;
    for (const StageKernel& stage : stages) names += (names.empty() ? "" : " + ") + stage.name;
    return names;
}

const StageKernel* Candidate::not_built() const {
    const auto found = std::ranges::find(stages, nullptr, &StageKernel::instance);
    return found == stages.end() ? nullptr : &*found;
}

Candidate planned_candidate(const KernelSource& source, const Problem& problem,
                            std::span<const KernelFamily> stages, const Rotation& rotation) {
    return Composer(source, problem, stages, rotation).compose(nullptr, stages.front());
}

std::vector<Candidate> all_candidates(const KernelSource& source, const Problem& problem,
                                      std::span<const KernelFamily> stages, const std::string& filter,
                                      const Rotation& rotation) {
    const Composer composer(source, problem, stages, rotation);
    std::vector<Candidate> candidates;
    for (const KernelFamily stage : stages)
        for (const StageKernel& kernel : composer.accepting(stage)) {
            if (!filter.empty() && !catalog::glob_match(filter, kernel.name)) continue;
            Candidate candidate = composer.compose(&kernel, stage);
            // The planned kernels come up once a stage.
            if (std::ranges::find(candidates, candidate.name(), &Candidate::name) == candidates.end())
                candidates.push_back(std::move(candidate));
        }
    return candidates;
}

} // namespace fmha::harness
