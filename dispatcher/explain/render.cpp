#include "dispatcher/explain/explain.hpp"

#include "dispatcher/types/field_json.hpp"
#include "dispatcher/types/json.hpp"

#include <fmt/format.h>

namespace fmha {

namespace {

std::string stage_text(const StageExplanation& stage) {
    std::string text = fmt::format("{}: {}\n", to_string(stage.family),
                                   stage.kernel    ? *stage.kernel
                                   : !stage.needed ? "not needed, the main kernel writes dQ directly"
                                                   : "no kernel");
    if (!stage.needed) return text;
    if (stage.chosen_by_heuristic) text += "  preferred by the heuristic over the policy's own order\n";
    if (stage.runner_up) {
        const RunnerUp& second = *stage.runner_up;
        text += fmt::format("  runner-up {}\n    lost on {}", second.kernel, second.criterion);
        if (second.winner_value != second.own_value)
            text += fmt::format(": {} against {}", second.own_value, second.winner_value);
        text += '\n';
    } else if (stage.kernel) {
        text += "  no other kernel takes this stage\n";
    }
    if (stage.looked_at == 0) return text + "  no kernel of this family is registered\n";
    text += fmt::format("  {} of {} kernels of this family take it{}\n", stage.accepted, stage.looked_at,
                        stage.nearest.empty() ? "" : "; nearest of the others, closest first:");
    for (const NearMiss& miss : stage.nearest) {
        text += fmt::format("  {}\n    {}", miss.kernel, miss.first.sentence);
        if (miss.failures > 1) text += fmt::format(" ({} more conditions fail)", miss.failures - 1);
        text += fmt::format("\n    fix: {}\n", miss.first.fix);
    }
    if (!stage.others.empty()) {
        text += "  others:";
        for (const auto& [reason, count] : stage.others)
            text += fmt::format(" {} {},", count, to_string(reason));
        text.back() = '\n';
    }
    return text;
}

std::string splits_text(const SplitChoice& choice) {
    std::string text = fmt::format("num_splits {} by {}: ", choice.num_splits, choice.rule);
    if (choice.compute_units == 0) return text + "the number of compute units is not known\n";
    text += fmt::format(
        "a launch without splits has {:.0f} of the {} blocks that fit, {} on each of {} compute units\n",
        choice.blocks, choice.compute_units * choice.at_once, choice.at_once, choice.compute_units);
    if (choice.most <= 1)
        return text + fmt::format("  from {} of them on nothing is split\n", choice.unsplit);
    text += fmt::format(
        "  the fewest of 1 to {} splits whose rounds of blocks are {} as full as the fullest: {}, {:.3f} of "
        "{:.3f}\n",
        choice.most, choice.near, choice.unbounded, choice.fullness, choice.best);
    if (choice.key_tiles > 0) text += fmt::format("  bounded by the tiles of keys: {}\n", choice.key_tiles);
    return text;
}

Json splits_json(const SplitChoice& choice) {
    return {{"rule", choice.rule},
            {"num_splits", choice.num_splits},
            {"compute_units", choice.compute_units},
            {"blocks_at_once", choice.at_once},
            {"blocks", choice.blocks},
            {"unsplit", choice.unsplit},
            {"most", choice.most},
            {"near", choice.near},
            {"fullness", choice.fullness},
            {"best", choice.best},
            {"key_tiles", choice.key_tiles}};
}

Json stage_json(const StageExplanation& stage) {
    Json object;
    object["family"] = to_string(stage.family);
    object["needed"] = stage.needed;
    object["kernel"] = stage.kernel ? Json(*stage.kernel) : Json(nullptr);
    object["looked_at"] = stage.looked_at;
    object["accepted"] = stage.accepted;
    object["chosen_by_heuristic"] = stage.chosen_by_heuristic;
    object["runner_up"] = nullptr;
    if (stage.runner_up)
        object["runner_up"] = {{"kernel", stage.runner_up->kernel},
                               {"criterion", stage.runner_up->criterion},
                               {"value", stage.runner_up->own_value},
                               {"winner_value", stage.runner_up->winner_value}};
    object["nearest"] = Json::array();
    for (const NearMiss& miss : stage.nearest)
        object["nearest"].push_back({{"kernel", miss.kernel},
                                     {"reason", to_string(miss.first.reason)},
                                     {"field", miss.first.field},
                                     {"value", miss.first.value},
                                     {"limit", miss.first.limit},
                                     {"sentence", miss.first.sentence},
                                     {"fix", miss.first.fix},
                                     {"failures", miss.failures}});
    object["others"] = Json::object();
    for (const auto& [reason, count] : stage.others) object["others"][std::string(to_string(reason))] = count;
    return object;
}

std::string missing_names(const ExecutionPlan& plan) {
    std::string names;
    for (const KernelFamily family : plan.missing())
        names += (names.empty() ? "" : ", ") + std::string(to_string(family));
    return names;
}

/// One line; empty for a plan that needs none.
std::string workspace_text(const ExecutionPlan& plan, std::string_view indent = {}) {
    if (plan.workspace_bytes() == 0) return {};
    return fmt::format("{}workspace: {} bytes{}\n", indent, plan.workspace_bytes(),
                       plan.workspace_exact() ? ""
                                              : " (upper bound: lengths or compute units are not stated)");
}

} // namespace

std::string plan_to_text(const Dispatcher& dispatcher, const ExecutionPlan& plan) {
    std::string text = plan.problem().to_string() + '\n';
    for (const PlanStage& stage : plan.stages())
        text +=
            fmt::format("  {}: {}\n", to_string(stage.family), dispatcher.registry().name_of(*stage.kernel));
    if (!plan.valid()) text += fmt::format("  missing: {}\n", missing_names(plan));
    text += workspace_text(plan, "  ");
    return text;
}

Json plan_to_json(const Dispatcher& dispatcher, const ExecutionPlan& plan) {
    Json object;
    object["problem"] = fields_to_json(plan.problem());
    object["valid"] = plan.valid();
    object["stages"] = Json::array();
    for (const PlanStage& stage : plan.stages())
        object["stages"].push_back({{"family", to_string(stage.family)},
                                    {"kernel", dispatcher.registry().name_of(*stage.kernel)},
                                    {"identifier", identifier(stage.kernel->config)},
                                    {"built", stage.kernel->instance != nullptr},
                                    {"workspace_bytes", stage.workspace_bytes}});
    object["missing"] = Json::array();
    for (const KernelFamily family : plan.missing()) object["missing"].push_back(to_string(family));
    object["workspace_bytes"] = plan.workspace_bytes();
    object["workspace_exact"] = plan.workspace_exact();
    return object;
}

std::string to_text(const Explanation& explanation) {
    const ExecutionPlan& plan = explanation.plan;
    std::string text =
        fmt::format("{} for {}\n", plan.valid() ? "plan" : "no complete plan", plan.problem().to_string());
    text += fmt::format("policy {}, {} kernels registered\n", explanation.policy, explanation.registered);
    if (!plan.valid()) text += fmt::format("missing: {}\n", missing_names(plan));
    if (explanation.heuristic_unknown > 0)
        text += fmt::format("the heuristic named {} kernels that are not registered\n",
                            explanation.heuristic_unknown);
    if (explanation.splits) text += splits_text(*explanation.splits);
    for (const StageExplanation& stage : explanation.stages) text += stage_text(stage);
    text += workspace_text(plan);
    return text;
}

Json to_json(const Explanation& explanation) {
    Json object;
    object["problem"] = fields_to_json(explanation.plan.problem());
    object["valid"] = explanation.plan.valid();
    object["policy"] = explanation.policy;
    object["registered"] = explanation.registered;
    object["heuristic_unknown"] = explanation.heuristic_unknown;
    object["missing"] = Json::array();
    for (const KernelFamily family : explanation.plan.missing())
        object["missing"].push_back(to_string(family));
    object["workspace_bytes"] = explanation.plan.workspace_bytes();
    object["splits"] = explanation.splits ? splits_json(*explanation.splits) : Json(nullptr);
    object["stages"] = Json::array();
    for (const StageExplanation& stage : explanation.stages) object["stages"].push_back(stage_json(stage));
    return object;
}

} // namespace fmha
