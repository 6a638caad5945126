#include "kernels/catalog/rules/rules_tables.hpp"

#include "dispatcher/types/error.hpp"

#include <algorithm>

namespace fmha::catalog::audit {

namespace {

constexpr std::size_t fallback_prefix = 5;

std::string_view rule_set_name(RulesFlavour flavour) {
    return flavour == RulesFlavour::claim ? "claim" : "stored";
}

void append_tiles(const TableNode& node, TileTable& table) {
    for (const TableNode& entry : node.items()) {
        entry.allow_keys({"data_types", "head", "tiles"});
        const auto [q, v] = entry.at("head").extents<2>();
        const HeadDims head{q, v};
        for (const std::string& type : entry.at("data_types").texts()) {
            auto& heads = table[type];
            auto at = std::ranges::lower_bound(heads, head, {}, &HeadTiles::head);
            if (at == heads.end() || at->head != head) at = heads.insert(at, {head, {}});
            for (const TableNode& listed : entry.at("tiles").items()) {
                const auto t = listed.extents<6>();
                const Tile tile{t[0], t[1], t[2], t[3], t[4], t[5], 0, 0, 0};
                if (std::ranges::find(at->tiles, tile, &ListedTile::tile) != at->tiles.end())
                    listed.refuse("a tile that is not listed yet for " + type);
                at->tiles.push_back({tile, listed.source()});
            }
        }
    }
}

void read_flavour(const TableNode& node, RulesTables& tables) {
    node.allow_keys({"rules", "batch_prefill_modes", "data_types"});
    for (const TableNode& entry : node.at("rules").items()) {
        const std::string id = entry.text();
        const auto rule = std::ranges::find(audit_rules(), std::string_view(id), &AuditRuleText::id);
        if (rule == audit_rules().end() || !id.starts_with("RULES-")) entry.refuse("the id of a RULES- rule");
        tables.forward_rules |= rule_bit(rule->rule);
    }
    for (const TableNode& entry : node.at("batch_prefill_modes").items()) {
        const auto mode = parse_enum<Mode>(entry.text());
        if (!mode) entry.refuse("one of " + allowed_names<Mode>());
        tables.prefill_modes.push_back(*mode);
    }
    const TableNode types = node.at("data_types");
    types.allow_keys({"fwd", "splitkv", "pagedkv", "appendkv", "batch_prefill", "bwd"});
    for (const SweepVariant variant : sweep_variants)
        if (types.has(to_string(variant)))
            tables.default_data_types[static_cast<std::size_t>(variant)] =
                types.at(to_string(variant)).data_types();
}

/// The file of `name` when it has the rule set.
const arch::ArchTables* own_file(const arch::ArchSet& archs, std::string_view name,
                                 std::string_view rule_set) {
    const auto* exact = archs.find(name);
    return exact != nullptr && exact->has_rule_set(rule_set) ? exact : nullptr;
}

/// The first file with the rule set whose first characters start `name`; null when there is none.
const arch::ArchTables* closest(const arch::ArchSet& archs, std::string_view name,
                                std::string_view rule_set) {
    for (const arch::ArchTables& candidate : archs.all()) {
        const std::string_view other = candidate.name();
        if (candidate.has_rule_set(rule_set) && other.size() >= fallback_prefix &&
            name.starts_with(other.substr(0, fallback_prefix)))
            return &candidate;
    }
    return nullptr;
}

} // namespace

RulesTables read_rules_tables(const arch::ArchSet& archs, RulesFlavour flavour, std::string_view arch_name) {
    const std::string_view rule_set = rule_set_name(flavour);
    if (!arch_name.starts_with("gfx")) archs.at(arch_name).rule_set(rule_set);
    RulesTables tables;
    tables.arch = ArchName(arch_name);
    const auto* own = own_file(archs, arch_name, rule_set);
    const TableNode types_from((own != nullptr ? *own : archs.at(fallback_types_arch)).rule_set(rule_set));
    tables.data_types = types_from.at("data_types").data_types();
    read_flavour(TableNode(archs.table(types_from.at("flavour").text())), tables);
    tables.backward = read_backward_tables(TableNode(archs.table(types_from.at("backward").text())));

    const TableNode variants(archs.table(types_from.at("variants").text()));
    variants.allow_keys(
        {"splitkv_tiles", "combine_head_dims", "pagedkv_tiles", "appendkv_head_dims", "batch_prefill_tiles"});
    tables.variants_source = variants.source();
    append_tiles(variants.at("splitkv_tiles"), tables.splitkv);
    append_tiles(variants.at("pagedkv_tiles"), tables.pagedkv);
    append_tiles(variants.at("batch_prefill_tiles"), tables.batch_prefill);
    tables.combine = read_head_list(variants.at("combine_head_dims"));
    tables.appendkv = read_head_list(variants.at("appendkv_head_dims"));

    if (const auto* tiles_arch = own != nullptr ? own : closest(archs, arch_name, rule_set)) {
        const TableNode node(tiles_arch->rule_set(rule_set));
        node.allow_keys({"data_types", "flavour", "backward", "variants", "forward", "trload"});
        for (const std::string& path : node.at("forward").texts()) {
            const TableNode table(archs.table(path));
            table.allow_keys({"forward_tiles"});
            append_tiles(table.at("forward_tiles"), tables.forward);
        }
        tables.has_trload = own != nullptr && node.at("trload").boolean();
    }
    if (tables.has_trload)
        tables.forward_rules |= rule_bit(AuditRule::tile_trload) | rule_bit(AuditRule::tile_v3_m0);
    return tables;
}

HeadList read_head_list(const TableNode& node) {
    HeadList list;
    for (const TableNode& entry : node.items()) {
        entry.allow_keys({"data_types", "head_dims"});
        for (const std::string& type : entry.at("data_types").texts())
            if (!list.emplace(type, entry.at("head_dims").distinct_integers()).second)
                entry.refuse("one list of head dimensions for " + type);
    }
    return list;
}

const std::vector<HeadTiles>* forward_tiles(const RulesTables& tables, std::string_view data_type) {
    for (const std::string_view name : {data_type, std::string_view("fp16"), std::string_view("bf16")})
        if (const auto found = tables.forward.find(name); found != tables.forward.end())
            return &found->second;
    return nullptr;
}

} // namespace fmha::catalog::audit
