#include "parity/between_audit.hpp"

#include "dispatcher/types/family_traits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fmha::parity {
namespace {

using catalog::RuleSet;

/// The levels of a key, in order; families without a tile write "-" so that the places stay the same.
constexpr std::array<std::string_view, 7> levels{"the family",     "the data type", "the head dimensions",
                                                 "the tile",       "the pipeline",  "the mode",
                                                 "the layout of V"};

/// The name of a family or pipeline, some of which have '_', which separates tokens.
template <NamedEnum E>
std::string one_token(E value) {
    std::string text(to_string(value));
    std::ranges::replace(text, '_', '-');
    return text;
}

bool has_tile(KernelFamily family) {
    return traits_of(family).products != MatrixProducts::none;
}

bool is_of_backward(const KernelConfig& config) {
    return traits_of(config.signature.family).products == MatrixProducts::five;
}

std::string tile_token(const KernelConfig& config) {
    if (!has_tile(config.signature.family)) return "-";
    const Tile& t = config.algorithm.tile;
    auto text = fmt::format("t{}x{}x{}x{}x{}x{}", t.m0, t.n0, t.k0, t.n1, t.k1, t.k0max);
    if (is_of_backward(config)) text += fmt::format("x{}x{}x{}", t.b6, t.b7, t.b8);
    return text;
}

/// Only the paddings that the family has; the others are defaults that differ between the rule sets.
std::string pad_token(const KernelConfig& config) {
    const Padding& pad = config.algorithm.pad;
    const KernelTraits& traits = traits_of(config.signature.family);
    if (is_of_backward(config)) return fmt::format("pad{}{}", pad.d, pad.dv);
    if (traits.key_axis) return fmt::format("pad{:d}{:d}{}{}", pad.s, pad.sk, pad.d, pad.dv);
    if (traits.query_dim) return fmt::format("pad{:d}{}", pad.s, pad.d);
    return fmt::format("pad{:d}-{:d}", pad.s, pad.dv != 0);
}

std::string_view dropout_token(const KernelConfig& config) {
    if (!is_of_backward(config)) return config.signature.has_dropout ? "dropout" : "";
    if (!config.signature.has_dropout) return "";
    switch (config.algorithm.dropout_variant) {
    case DropoutVariant::none:
        return "dropout";
    case DropoutVariant::dropout_wg32:
        return "wg32";
    case DropoutVariant::dropout_wg32_storerandval:
        return "wg32-storerandval";
    case DropoutVariant::dropout_wg16:
        return "wg16";
    case DropoutVariant::dropout_wg16_storerandval:
        return "wg16-storerandval";
    }
    return "";
}

void add_features(const KernelConfig& config, std::string& key) {
    const Signature& s = config.signature;
    const auto flag = [&](bool on, std::string_view token) {
        if (on && !token.empty()) key += fmt::format("_{}", token);
    };
    const ApiTraits& api = api_traits_of(s.family);
    const bool masks = has_tile(s.family);
    flag(masks, to_string(s.mask));
    flag(masks, fmt::format("{}-bias", to_string(s.bias)));
    flag(!traits_of(s.family).stores_splits && s.has_lse, "lse");
    flag(true, dropout_token(config));
    flag(s.has_logits_soft_cap, "logits");
    flag(s.has_sink, "sink");
    flag(s.has_sink_logit, "sink-logit");
    flag(s.skip_min_seqlen_q, "skip");
    flag(s.qscale != QScale::no_scale, fmt::format("qs-{}", to_string(s.qscale)));
    flag(s.use_paged_kv && !api.always_paged, "pagedkv");
    flag(s.rope != Rope::none, to_string(s.rope));
    flag(s.is_deterministic, "deterministic");
    flag(s.has_dbias, "dbias");
    if (api.lists_pages)
        key += fmt::format("_ps{}_{}_{}", s.page_size, to_string(s.kv_layout),
                           s.kv_lookup == KvLookup::vllm_2d ? "vllm" : "sglang");
}

std::vector<std::string> keys_of(const arch::ArchSet& archs, RuleSet rules, const ArchName& arch,
                                 const catalog::Profile& profile, Check& check) {
    catalog::Request request;
    request.rules = rules;
    request.targets = {arch};
    request.profile = profile;
    if (rules == RuleSet::ck) request.masks = catalog::MaskVocabulary::generic;
    std::vector<std::string> keys;
    catalog::enumerate(archs, request,
                       [&](const KernelConfig& config) { keys.push_back(neutral_key(config)); });
    check.compared += static_cast<std::int64_t>(keys.size());
    std::sort(keys.begin(), keys.end());
    const auto kernels = keys.size();
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    if (keys.size() != kernels)
        check.notes.push_back(
            fmt::format("{} has {} kernels under {} keys: it tells more apart than the keys do",
                        to_string(rules), kernels, keys.size()));
    return keys;
}

/// Gathers groups by (family, level), so that a report of thousands of keys is a page.
void merge_by_level(std::vector<NameGroup>& groups, RuleSet other) {
    std::vector<NameGroup> merged;
    for (NameGroup& group : groups) {
        const auto family = group.beginning.substr(0, group.beginning.find('_'));
        group.cause =
            fmt::format("{} has no {} kernel with {}", to_string(other), family, level_of(group.beginning));
        auto into =
            std::find_if(merged.begin(), merged.end(), [&](const auto& g) { return g.cause == group.cause; });
        if (into == merged.end()) {
            merged.push_back(std::move(group));
            continue;
        }
        into->beginning = family;
        into->names.insert(into->names.end(), std::make_move_iterator(group.names.begin()),
                           std::make_move_iterator(group.names.end()));
    }
    groups = std::move(merged);
}

} // namespace

std::string neutral_key(const KernelConfig& config) {
    const Signature& s = config.signature;
    // Backward kernels have one pipeline and one head dimension each; the words of the rule sets for the pipeline and
    // for hdim_v are defaults. Their tiles tell the padded dimensions.
    const ApiTraits& api = api_traits_of(s.family);
    const bool is_backward = api.gradients;
    std::string key = fmt::format(
        "{}_{}_{}_{}_{}_{}_{}_{}", one_token(s.family), to_string(s.data_type),
        is_backward ? fmt::format("h{}", s.hdim_q) : fmt::format("h{}x{}", s.hdim_q, s.hdim_v),
        tile_token(config), has_tile(s.family) && !is_backward ? one_token(config.algorithm.pipeline) : "-",
        api.stores_keys ? "-" : to_string(s.mode), s.v_layout == VLayout::row ? "vr" : "vc",
        pad_token(config));
    add_features(config, key);
    return key;
}

std::string level_of(std::string_view beginning) {
    const auto tokens = static_cast<std::size_t>(std::count(beginning.begin(), beginning.end(), '_'));
    if (tokens >= levels.size()) return "these paddings and features";
    const auto last = beginning.rfind('_');
    const auto value = last == std::string_view::npos ? beginning : beginning.substr(last + 1);
    return fmt::format("{} {}", levels[tokens], value);
}

AuditReport audit_between(const arch::ArchSet& archs, RuleSet left, RuleSet right,
                          const std::vector<ArchName>& on, const catalog::Profile& profile,
                          const OnCheck& on_check) {
    AuditReport report;
    report.title = fmt::format("{} against {}", to_string(left), to_string(right));
    report.differences_are_failures = false;
    run_checks(report, on.size(), on_check, [&](std::size_t i) {
        Check check;
        check.subject = fmt::format("{} {}", on[i].view(), catalog::profile_name(profile));
        check.unit = "kernels";
        auto expected = keys_of(archs, left, on[i], profile, check);
        auto actual = keys_of(archs, right, on[i], profile, check);
        // Keys that differ in one token are different kernels here, so nothing is called renamed.
        check.difference = difference(std::move(expected), std::move(actual), Renames::ignore);
        merge_by_level(check.difference->lost, right);
        merge_by_level(check.difference->gained, left);
        return check;
    });
    return report;
}

} // namespace fmha::parity
