#include "kernels/catalog/rules/rules_ops.hpp"

#include "kernels/catalog/rules/audit_request.hpp"
#include "kernels/catalog/rules/rules_enumerate.hpp"
#include "kernels/catalog/rules/sweep_name.hpp"

#include <algorithm>

namespace fmha::catalog::audit {

namespace {

void append_name(const Naming&, const KernelConfig& config, std::string& out) {
    append_sweep_name(SweepNameStyle::rules, config, out);
}

template <RulesFlavour flavour>
void enumerate(const arch::ArchSet& archs, const Request& request, Sink sink) {
    const auto selections = selections_of(request);
    const CandidateSink asked = asked_families(request, sink);
    for (const ArchName& target : request.targets) {
        const RulesTables tables = read_rules_tables(archs, flavour, target);
        for (const Selection& selection : selections) enumerate_rules(tables, selection, asked);
    }
}

WhyStep table_step(std::string id, std::string text) {
    return {WhyStep::Kind::table, std::move(id), std::move(text), false};
}

void append_listed(const std::vector<HeadTiles>* heads, const KernelConfig& config,
                   std::vector<WhyStep>& steps) {
    if (heads == nullptr) return;
    for (const HeadTiles& entry : *heads)
        for (const ListedTile& listed : entry.tiles)
            if (entry.head == HeadDims{config.signature.hdim_q, config.signature.hdim_v} &&
                listed.tile == config.algorithm.tile)
                steps.push_back(table_step(listed.source, "the tile"));
}

const std::vector<HeadTiles>* tiles_of(const TileTable& table, const KernelConfig& config) {
    const auto found = table.find(to_string(config.signature.data_type));
    return found == table.end() ? nullptr : &found->second;
}

std::vector<WhyStep> origins(const RulesTables& tables, const KernelConfig& config) {
    std::vector<WhyStep> steps;
    switch (config.signature.family) {
    case KernelFamily::fwd:
        append_listed(forward_tiles(tables, to_string(config.signature.data_type)), config, steps);
        break;
    case KernelFamily::fwd_splitkv:
        append_listed(tiles_of(tables.splitkv, config), config, steps);
        break;
    case KernelFamily::fwd_pagedkv:
        append_listed(tiles_of(tables.pagedkv, config), config, steps);
        break;
    case KernelFamily::batch_prefill:
        append_listed(tiles_of(tables.batch_prefill, config), config, steps);
        break;
    case KernelFamily::fwd_splitkv_combine:
        steps.push_back(table_step(tables.variants_source + "/combine_head_dims", "the head dimension"));
        break;
    case KernelFamily::fwd_appendkv:
        steps.push_back(table_step(tables.variants_source + "/appendkv_head_dims", "the head dimension"));
        break;
    case KernelFamily::bwd_dot_do_o:
    case KernelFamily::bwd_dq_dk_dv:
    case KernelFamily::bwd_convert_dq:
        steps.push_back(table_step(backward_source(tables.backward, config), "the tile or head dimension"));
        break;
    default: // upstream does not have it
        break;
    }
    steps.push_back(feature_step(config));
    return steps;
}

template <RulesFlavour flavour>
Why why(const arch::ArchSet& archs, const Request& request, std::string_view name) {
    Why answer;
    answer.name = std::string(name);
    for (const ArchName& target : request.targets) {
        if (answer.listed) break;
        const RulesTables tables = read_rules_tables(archs, flavour, target);
        explain(
            request,
            [&](const Selection& selection, const CandidateSink& sink) {
                enumerate_rules(tables, selection, sink);
            },
            [&](const KernelConfig& config) { return origins(tables, config); }, answer);
    }
    return answer;
}

template <RuleSet rules>
std::vector<RuleRow> rows() {
    return rule_rows(rules);
}

} // namespace

const RuleSetOps& claim_ops() {
    static constexpr RuleSetOps ops{RuleSet::claim, enumerate<RulesFlavour::claim>, append_name,
                                    why<RulesFlavour::claim>, rows<RuleSet::claim>};
    return ops;
}

const RuleSetOps& stored_ops() {
    static constexpr RuleSetOps ops{RuleSet::stored, enumerate<RulesFlavour::stored>, append_name,
                                    why<RulesFlavour::stored>, rows<RuleSet::stored>};
    return ops;
}

} // namespace fmha::catalog::audit
