#include "kernels/catalog/rules/audit_request.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/catalog/rules/sweep_name.hpp"

#include <algorithm>
#include <charconv>

namespace fmha::catalog::audit {

namespace {

bool any_family(const Request& request, SweepVariant variant) {
    return std::ranges::any_of(EnumTable<KernelFamily>::names, [&](const auto& entry) {
        return variant_of(entry.value) == variant && request.families.has(entry.value);
    });
}

/// The longest family whose name starts `text`; families contain underscores and start one another.
std::optional<KernelFamily> leading_family(std::string_view text) {
    std::optional<KernelFamily> best;
    std::size_t length = 0;
    for (const auto& [family, name] : EnumTable<KernelFamily>::names)
        if (text.starts_with(name) && text.substr(name.size()).starts_with('_') && name.size() > length) {
            best = family;
            length = name.size();
        }
    return best;
}

std::optional<std::array<std::int64_t, 2>> head_of(std::string_view token) {
    if (!token.starts_with('h')) return std::nullopt;
    std::array<std::int64_t, 2> head{};
    const char* const end = token.data() + token.size();
    auto result = std::from_chars(token.data() + 1, end, head[0]);
    if (result.ec != std::errc()) return std::nullopt;
    head[1] = head[0];
    if (result.ptr != end && *result.ptr == 'x') result = std::from_chars(result.ptr + 1, end, head[1]);
    if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
    return head;
}

} // namespace

ReceiptFilter receipts_of(const Profile& profile) {
    ReceiptFilter filter;
    filter.receipts.clear();
    if (profile.id == ProfileId::unlisted) {
        filter.receipts.push_back(profile.number);
        return filter;
    }
    for (const ProfileId member : profile_members(profile)) {
        filter.everything = filter.everything || member == ProfileId::all;
        filter.receipts.push_back(named_profile(member).number);
    }
    return filter;
}

std::optional<SweepVariant> variant_of(KernelFamily family) {
    switch (family) {
    case KernelFamily::fwd:
        return SweepVariant::fwd;
    case KernelFamily::fwd_pagedkv:
        return SweepVariant::pagedkv;
    case KernelFamily::fwd_splitkv:
    case KernelFamily::fwd_splitkv_combine:
        return SweepVariant::splitkv;
    case KernelFamily::fwd_appendkv:
        return SweepVariant::appendkv;
    case KernelFamily::batch_prefill:
        return SweepVariant::batch_prefill;
    case KernelFamily::bwd_dot_do_o:
    case KernelFamily::bwd_dq_dk_dv:
    case KernelFamily::bwd_convert_dq:
        return SweepVariant::bwd;
    default:
        return std::nullopt;
    }
}

std::vector<Selection> selections_of(const Request& request) {
    if (!request.optdim.empty())
        throw InputError("optdim applies to rule set ck only, not to " +
                         std::string(to_string(request.rules)) + "; filter with an expression over c.hdim_q");
    if (request.exhaustive && request.rules != RuleSet::sweep)
        throw InputError("exhaustive mode applies to rule set sweep only, not to " +
                         std::string(to_string(request.rules)));
    std::vector<Selection> selections;
    for (const SweepVariant variant : sweep_variants) {
        if (request.sweep && request.sweep->variant != variant) continue;
        if (!any_family(request, variant)) continue;
        Selection selection;
        selection.variant = variant;
        if (request.sweep) selection.allow = request.sweep->allow;
        selection.receipts = receipts_of(request.profile);
        selections.push_back(std::move(selection));
    }
    return selections;
}

CandidateSink asked_families(const Request& request, const Sink& sink) {
    return [families = request.families, &sink](const KernelConfig& config, RuleBits) {
        if (families.has(config.signature.family)) sink(config);
    };
}

std::vector<RuleRow> rule_rows(RuleSet rules) {
    std::vector<RuleRow> rows;
    for (const AuditRuleText& rule : audit_rules())
        if (rule.belongs_to(rules)) rows.push_back({rule.id, rule.families, rule.says});
    return rows;
}

NameHead read_name_head(std::string_view name) {
    NameHead head;
    constexpr std::string_view prefix = "fmha_";
    if (!name.starts_with(prefix)) return head;
    name.remove_prefix(prefix.size());
    head.family = leading_family(name);
    if (!head.family) return head;
    name.remove_prefix(to_string(*head.family).size() + 1);
    for (int token = 0; token < 3 && !name.empty(); ++token) {
        const std::string_view text = name.substr(0, name.find('_'));
        if (token == 0) head.data_type = parse_enum<DataType>(text);
        if (token == 2) head.head = head_of(text);
        name.remove_prefix(std::min(name.size(), text.size() + 1));
    }
    return head;
}

WhyStep feature_step(const KernelConfig& config) {
    return {WhyStep::Kind::table,
            "features/" + std::string(to_string(config.signature.family)) + "/" +
                std::string(to_string(config.signature.data_type)),
            "the product of masks, biases, paddings and flags", false};
}

void explain(const Request& request, const Walk& walk, const Origins& origins, Why& answer) {
    const SweepNameStyle style =
        request.rules == RuleSet::sweep ? SweepNameStyle::sweep : SweepNameStyle::rules;
    std::string shown;
    RuleBits failed = 0;
    const CandidateSink look = [&](const KernelConfig& config, RuleBits of_candidate) {
        if (answer.config && failed == 0) return;
        shown.clear();
        append_sweep_name(style, config, shown);
        if (shown != answer.name || (answer.config && of_candidate != 0)) return;
        answer.config = config;
        failed = of_candidate;
    };
    const NameHead head = read_name_head(answer.name);
    // Every candidate's name begins with all three.
    if (!head.family || !head.data_type || !head.head) return;
    for (Selection selection : selections_of(request)) {
        if (selection.variant != variant_of(*head.family)) continue;
        selection.keep_rejected = true;
        walk(selection, look);
    }
    if (!answer.config) return;
    const KernelFamily family = answer.config->signature.family;
    answer.steps = origins(*answer.config);
    for (const AuditRuleText& rule : audit_rules()) {
        const bool removes = (failed & rule_bit(rule.rule)) != 0;
        // Lists that let a kernel through say nothing about it.
        const bool worth_saying =
            rule.belongs_to(request.rules) && rule.touches(family) && !rule.id.starts_with("ALLOW-");
        if (removes || worth_saying)
            answer.steps.push_back(
                {WhyStep::Kind::rule, std::string(rule.id), std::string(rule.says), removes});
    }
    const bool asked = request.families.has(family);
    if (!asked)
        answer.steps.push_back(
            {WhyStep::Kind::option, "family", "the request asks for other families", true});
    answer.listed = failed == 0 && asked;
}

} // namespace fmha::catalog::audit
