#include "dispatcher/explain/explain.hpp"

#include "dispatcher/types/family_traits.hpp"

#include <algorithm>
#include <map>

namespace fmha {

namespace {

struct Candidate {
    Distance distance;
    const KernelEntry* entry = nullptr;

    /// Closer first: fewer failing conditions, then a later first failure, then a smaller miss.
    bool closer_than(const Candidate& other) const {
        if (distance.failures != other.distance.failures) return distance.failures < other.distance.failures;
        const Verdict &own = distance.first, &theirs = other.distance.first;
        if (own.reason != theirs.reason) return own.reason > theirs.reason;
        const auto miss = [](const Verdict& v) {
            return v.value > v.limit ? v.value - v.limit : v.limit - v.value;
        };
        if (miss(own) != miss(theirs)) return miss(own) < miss(theirs);
        return entry->config < other.entry->config;
    }
};

std::optional<RunnerUp> runner_up(const Registry& registry, const SelectionPolicy& policy,
                                  const std::vector<RankedKernel>& ranked, const KernelEntry* winner) {
    const auto best = std::find_if(ranked.begin(), ranked.end(),
                                   [&](const RankedKernel& one) { return one.entry == winner; });
    const auto second = std::find_if(ranked.begin(), ranked.end(),
                                     [&](const RankedKernel& one) { return one.entry != winner; });
    if (best == ranked.end() || second == ranked.end()) return std::nullopt;
    RunnerUp loser{registry.name_of(*second->entry), "configuration order", 0, 0};
    if (second < best) { // what would run without the heuristic has lost on no criterion
        loser.criterion = "the preference of the heuristic";
        return loser;
    }
    for (std::size_t i = 0; i < best->criteria.size(); ++i)
        if (best->criteria[i] != second->criteria[i]) {
            loser.criterion = policy.criteria()[i];
            loser.winner_value = best->criteria[i];
            loser.own_value = second->criteria[i];
            break;
        }
    return loser;
}

StageExplanation explain_stage(const Dispatcher& dispatcher, const Snapshot& kernels, const Problem& problem,
                               const StageQuery& query, const KernelEntry* winner, std::size_t nearest) {
    StageExplanation stage;
    stage.family = query.family;
    std::vector<Candidate> closest;
    std::map<Reason, std::size_t> refused;
    const auto closer = [](const Candidate& a, const Candidate& b) { return a.closer_than(b); };
    for (const auto& segment : kernels.segments())
        for (const KernelEntry& entry : segment->entries()) {
            if (entry.config.signature.family != query.family) continue;
            ++stage.looked_at;
            const Candidate candidate{distance(query, entry.config), &entry};
            if (candidate.distance.failures == 0) {
                ++stage.accepted;
                continue;
            }
            ++refused[candidate.distance.first.reason];
            closest.insert(std::upper_bound(closest.begin(), closest.end(), candidate, closer), candidate);
            if (closest.size() > nearest) closest.pop_back();
        }
    for (const Candidate& one : closest) {
        stage.nearest.push_back({dispatcher.registry().name_of(*one.entry),
                                 describe(one.distance.first, problem, one.entry->config),
                                 one.distance.failures});
        if (--refused[one.distance.first.reason] == 0) refused.erase(one.distance.first.reason);
    }
    stage.others.assign(refused.begin(), refused.end());
    if (winner != nullptr) {
        stage.kernel = dispatcher.registry().name_of(*winner);
        const auto ranked = dispatcher.policy().rank(kernels, query);
        stage.chosen_by_heuristic = !ranked.empty() && ranked.front().entry != winner;
        stage.runner_up = runner_up(dispatcher.registry(), dispatcher.policy(), ranked, winner);
    }
    return stage;
}

} // namespace

Explanation explain(const Dispatcher& dispatcher, const Problem& problem, std::size_t nearest) {
    Explanation explanation;
    const auto kernels = dispatcher.registry().snapshot();
    explanation.plan = dispatcher.plan(problem, kernels);
    explanation.policy = dispatcher.policy().name();
    explanation.registered = kernels->size();
    for (const std::string& identifier : dispatcher.preferred(explanation.plan.problem())) {
        const auto config = parse_identifier<KernelConfig>(identifier);
        if (!config || kernels->find(*config) == nullptr) ++explanation.heuristic_unknown;
    }
    const Problem& full = explanation.plan.problem();
    if (traits_of(full.api_family).splits_keys && problem.num_splits < 1)
        explanation.splits = dispatcher.choice_of_splits(problem);
    const auto chosen = [&](KernelFamily family) -> const KernelEntry* {
        for (const PlanStage& stage : explanation.plan.stages())
            if (stage.family == family) return stage.kernel.get();
        return nullptr;
    };
    const KernelFamily main_family = main_stage(full.api_family);
    const KernelEntry* main = chosen(main_family);
    for (const KernelFamily family : stages_of(full.api_family)) {
        StageQuery query = make_query(full, family);
        if (main != nullptr && family != main_family) follow_main(query, main->config);
        const auto missing = explanation.plan.missing();
        StageExplanation stage = explain_stage(dispatcher, *kernels, full, query, chosen(family), nearest);
        stage.needed = stage.kernel || std::find(missing.begin(), missing.end(), family) != missing.end();
        explanation.stages.push_back(std::move(stage));
    }
    return explanation;
}

} // namespace fmha
