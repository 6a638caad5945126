#include "kernels/catalog/catalog.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/catalog/ck/ck.hpp"
#include "kernels/catalog/house/house.hpp"
#include "kernels/catalog/rule_set.hpp"
#include "kernels/catalog/rules/rules_ops.hpp"
#include "kernels/catalog/sweep/sweep_ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fmha::catalog {

namespace {

const RuleSetOps& ops_of(RuleSet rules) {
    const std::array known{&ck::ops(), &audit::claim_ops(), &audit::stored_ops(), &audit::sweep_ops(),
                           &house::ops()};
    for (const RuleSetOps* ops : known)
        if (ops->rules == rules) return *ops;
    throw InputError(fmt::format("rule set \"{}\" is not available", to_string(rules)));
}

void check(const Request& request) {
    if (request.targets.empty()) throw InputError("enumerate: at least one architecture is needed");
    if ((request.rules == RuleSet::ck || request.rules == RuleSet::house) &&
        (request.sweep || request.exhaustive))
        throw InputError(fmt::format(
            "sweep configurations and exhaustive mode apply to claim, stored and sweep, not to {}",
            to_string(request.rules)));
    if (request.rules == RuleSet::ck) return;
    const auto refuse = [&](bool set, std::string_view option) {
        if (set)
            throw InputError(
                fmt::format("{} applies to rule set ck only, not to {}", option, to_string(request.rules)));
    };
    refuse(request.custom_factory, "the custom factory switch");
    refuse(
        std::any_of(request.filters.begin(), request.filters.end(), [](const auto& f) { return !f.empty(); }),
        "a glob filter");
    refuse(request.masks != MaskVocabulary::simplified, "a mask vocabulary");
}

using Tokens = std::vector<std::string_view>;

/// Splits a name at its underscores into `tokens`.
void split(std::string_view name, Tokens& tokens) {
    tokens.clear();
    for (;;) {
        const std::size_t end = name.find('_');
        tokens.push_back(name.substr(0, end));
        if (end == std::string_view::npos) return;
        name.remove_prefix(end + 1);
    }
}

bool contains(const Tokens& tokens, std::string_view token) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

Tokens without(const Tokens& tokens, const Tokens& others) {
    Tokens rest;
    for (const std::string_view token : tokens)
        if (!contains(others, token) && !contains(rest, token)) rest.push_back(token);
    return rest;
}

/// Leading tokens say which kind of kernel a name is, so they count twice.
std::size_t likeness(const Tokens& wanted, const Tokens& tokens) {
    const auto shared = std::count_if(tokens.begin(), tokens.end(),
                                      [&](std::string_view token) { return contains(wanted, token); });
    const auto parting = std::mismatch(tokens.begin(), tokens.end(), wanted.begin(), wanted.end()).first;
    return static_cast<std::size_t>(shared + (parting - tokens.begin()));
}

/// For a name that no table entry produces: the listed name most like it, and what tells them apart.
void compare_with_nearest(const arch::ArchSet& archs, const Request& request, Why& answer) {
    Tokens wanted;
    Tokens tokens;
    split(answer.name, wanted);
    std::size_t best_shared = wanted.size() / 2; // less is no neighbour
    std::string shown;
    enumerate(archs, request, [&](const KernelConfig& config) {
        shown.clear();
        append_name({request.rules, request.masks}, config, shown);
        split(shown, tokens);
        const auto shared = likeness(wanted, tokens);
        if (shared <= best_shared) return;
        best_shared = shared;
        answer.nearest = shown;
    });
    if (answer.nearest.empty()) return;
    split(answer.nearest, tokens);
    // The sentence leaves the neighbour's name out, so that names with one cause share one sentence.
    answer.steps.push_back(
        {WhyStep::Kind::table, "tables",
         fmt::format("no entry gives \"{}\"; the nearest listed name has \"{}\" there",
                     fmt::join(without(wanted, tokens), " "), fmt::join(without(tokens, wanted), " ")),
         true});
}

} // namespace

void enumerate(const arch::ArchSet& archs, const Request& request, Sink sink) {
    check(request);
    ops_of(request.rules).enumerate(archs, request, sink);
}

std::vector<KernelConfig> list(const arch::ArchSet& archs, const Request& request) {
    std::vector<KernelConfig> kernels;
    enumerate(archs, request, [&](const KernelConfig& config) { kernels.push_back(config); });
    return kernels;
}

void append_name(const Naming& naming, const KernelConfig& config, std::string& out) {
    ops_of(naming.rules).append_name(naming, config, out);
}

std::string name_of(const Naming& naming, const KernelConfig& config) {
    std::string name;
    append_name(naming, config, name);
    return name;
}

Why why(const arch::ArchSet& archs, const Request& request, std::string_view name) {
    check(request);
    const RuleSetOps& ops = ops_of(request.rules);
    Why answer;
    answer.name = std::string(name);
    if (ops.why != nullptr) {
        answer = ops.why(archs, request, name);
    } else {
        std::string shown;
        ops.enumerate(archs, request, [&](const KernelConfig& config) {
            shown.clear();
            ops.append_name({request.rules, request.masks}, config, shown);
            if (shown != name) return;
            answer.listed = true;
            answer.config = config;
        });
    }
    if (!answer.config) compare_with_nearest(archs, request, answer);
    return answer;
}

std::vector<RuleRow> rules_of(RuleSet rules) {
    return ops_of(rules).rules_of();
}

std::string Why::to_string() const {
    std::string text = fmt::format("{}: {}\n", name, listed ? "listed" : "not listed");
    if (!config) {
        text += "  no table entry produces this name\n";
        if (!nearest.empty()) text += fmt::format("  nearest listed name: {}\n", nearest);
    }
    for (const WhyStep& step : steps)
        text += fmt::format("  {} {}: {}\n", step.removes ? "removed by" : "passes", step.id, step.text);
    return text;
}

ApiFamily api_of(KernelFamily family) {
    switch (family) {
    case KernelFamily::fwd:
        return ApiFamily::fwd;
    case KernelFamily::fwd_pagedkv:
        return ApiFamily::fwd_pagedkv;
    case KernelFamily::fwd_splitkv:
    case KernelFamily::fwd_splitkv_combine:
        return ApiFamily::fwd_splitkv;
    case KernelFamily::fwd_appendkv:
        return ApiFamily::fwd_appendkv;
    case KernelFamily::batch_prefill:
        return ApiFamily::batch_prefill;
    case KernelFamily::bwd_dot_do_o:
    case KernelFamily::bwd_dq_dk_dv:
    case KernelFamily::bwd_convert_dq:
        return ApiFamily::bwd;
    }
    return ApiFamily::fwd;
}

FamilySet families_of(ApiFamily api) {
    FamilySet families = FamilySet::none();
    for (const auto& entry : EnumTable<KernelFamily>::names)
        if (api_of(entry.value) == api) families.add(entry.value);
    return families;
}

} // namespace fmha::catalog
