#pragma once

#include "dispatcher/dispatcher.hpp"
#include "dispatcher/types/json.hpp"

#include <optional>
#include <string>
#include <vector>

namespace fmha {

/// A kernel that does not take the stage, and why.
struct NearMiss {
    std::string kernel;
    Refusal first;
    std::size_t failures = 0; ///< conditions that fail in all
};

/// The second best kernel and the criterion that decided against it.
struct RunnerUp {
    std::string kernel;
    /// "tile_m0", "configuration order" when every criterion ties, or "the preference of the heuristic".
    std::string criterion;
    std::int64_t winner_value = 0, own_value = 0;
};

/// Everything about the choice of one stage.
struct StageExplanation {
    KernelFamily family = KernelFamily::fwd;
    std::size_t looked_at = 0; ///< kernels of this family in the registry
    std::size_t accepted = 0;
    bool needed = true; ///< false: the main kernel makes this stage superfluous
    std::optional<std::string> kernel;
    bool chosen_by_heuristic = false;
    std::optional<RunnerUp> runner_up;
    std::vector<NearMiss> nearest; ///< closest first; filled whether or not a kernel was found
    /// Kernels beside `nearest` by the reason at which they are refused.
    std::vector<std::pair<Reason, std::size_t>> others;
};

struct Explanation {
    ExecutionPlan plan;
    std::string policy;
    std::size_t registered = 0;
    /// Identifiers that the heuristic returned and nobody registered.
    std::size_t heuristic_unknown = 0;
    /// Of a family with splits, where the problem leaves their number to the plan.
    std::optional<SplitChoice> splits;
    std::vector<StageExplanation> stages;
};

/// Why `dispatcher` plans the problem as it does. `nearest` bounds the list of near misses of a stage. Throws
/// the errors of `Dispatcher::plan`.
Explanation explain(const Dispatcher& dispatcher, const Problem& problem, std::size_t nearest = 3);

/// For people, several lines, ending in a newline.
std::string to_text(const Explanation& explanation);

Json to_json(const Explanation& explanation);

/// The stages of a plan as JSON: kernels by name and identifier, missing stages, workspace.
Json plan_to_json(const Dispatcher& dispatcher, const ExecutionPlan& plan);

/// One line a stage.
std::string plan_to_text(const Dispatcher& dispatcher, const ExecutionPlan& plan);

} // namespace fmha
