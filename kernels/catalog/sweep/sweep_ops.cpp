#include "kernels/catalog/sweep/sweep_ops.hpp"

#include "kernels/catalog/rules/audit_request.hpp"
#include "kernels/catalog/rules/sweep_name.hpp"
#include "kernels/catalog/sweep/sweep_enumerate.hpp"

#include <fmt/format.h>

namespace fmha::catalog::audit {

namespace {

void append_name(const Naming&, const KernelConfig& config, std::string& out) {
    append_sweep_name(SweepNameStyle::sweep, config, out);
}

void walk(const SweepTables& tables, const Request& request, const Selection& selection,
          const CandidateSink& sink) {
    if (request.exhaustive)
        enumerate_exhaustive(tables, selection, sink);
    else
        enumerate_sweep(tables, selection, sink);
}

void enumerate(const arch::ArchSet& archs, const Request& request, Sink sink) {
    const auto selections = selections_of(request);
    const CandidateSink asked = asked_families(request, sink);
    for (const ArchName& target : request.targets) {
        const SweepTables tables = read_sweep_tables(archs, target);
        for (const Selection& selection : selections) walk(tables, request, selection, asked);
    }
}

WhyStep table_step(std::string id, std::string text) {
    return {WhyStep::Kind::table, std::move(id), std::move(text), false};
}

std::size_t index_of(const std::vector<std::int64_t>& values, std::int64_t value) {
    std::size_t index = 0;
    while (index < values.size() && values[index] != value) ++index;
    return index;
}

std::vector<WhyStep> origins(const SweepTables& tables, const KernelConfig& config) {
    const Tile& tile = config.algorithm.tile;
    std::vector<WhyStep> steps;
    switch (variant_of(config.signature.family).value()) {
    case SweepVariant::fwd:
    case SweepVariant::pagedkv:
    case SweepVariant::batch_prefill:
    case SweepVariant::splitkv:
        if (config.signature.family == KernelFamily::fwd_splitkv_combine) {
            steps.push_back(table_step(tables.source + "/combine_head_dims", "the head dimension"));
            break;
        }
        steps.push_back(
            table_step(fmt::format("{}/m0/{}", tables.source, index_of(tables.m0, tile.m0)), "m0"));
        steps.push_back(
            table_step(fmt::format("{}/n0/{}", tables.source, index_of(tables.n0, tile.n0)), "n0"));
        steps.push_back(
            table_step(fmt::format("{}/k0/{}", tables.source, index_of(tables.k0, tile.k0)), "k0"));
        steps.push_back(table_step(tables.source + "/head_dims", "the head dimension, which is n1"));
        steps.push_back(table_step(tables.source + "/k0max", "k0max"));
        break;
    case SweepVariant::appendkv:
        steps.push_back(table_step(tables.source + "/head_dims", "the head dimension"));
        break;
    case SweepVariant::bwd:
        steps.push_back(table_step(backward_source(tables.backward, config), "the tile or head dimension"));
        break;
    }
    steps.push_back(feature_step(config));
    return steps;
}

/// Leaves out of the tables the entries that the name rules out, so that millions of candidates become thousands.
void narrow(const NameHead& head, SweepTables& tables) {
    if (head.data_type)
        std::erase_if(tables.data_types,
                      [&](const std::string& name) { return name != to_string(*head.data_type); });
    if (!head.head) return;
    for (auto& [type, heads] : tables.heads)
        std::erase_if(heads, [&](const HeadDims& pair) {
            return pair != HeadDims{(*head.head)[0], (*head.head)[1]};
        });
}

Why why(const arch::ArchSet& archs, const Request& request, std::string_view name) {
    Why answer;
    answer.name = std::string(name);
    for (const ArchName& target : request.targets) {
        if (answer.listed) break;
        SweepTables tables = read_sweep_tables(archs, target);
        narrow(read_name_head(name), tables);
        explain(
            request,
            [&](const Selection& selection, const CandidateSink& sink) {
                walk(tables, request, selection, sink);
            },
            [&](const KernelConfig& config) { return origins(tables, config); }, answer);
    }
    return answer;
}

std::vector<RuleRow> rows() {
    return rule_rows(RuleSet::sweep);
}

} // namespace

const RuleSetOps& sweep_ops() {
    static constexpr RuleSetOps ops{RuleSet::sweep, enumerate, append_name, why, rows};
    return ops;
}

} // namespace fmha::catalog::audit
