#include "kernels/catalog/sweep/sweep_tables.hpp"

#include "dispatcher/types/error.hpp"

#include <algorithm>

namespace fmha::catalog::audit {

namespace {

void read_heads(const TableNode& node, SweepTables& tables) {
    for (const TableNode& entry : node.items()) {
        entry.allow_keys({"data_types", "heads"});
        std::vector<HeadDims> heads;
        for (const TableNode& pair : entry.at("heads").items()) {
            const auto [q, v] = pair.extents<2>();
            if (std::ranges::find(heads, HeadDims{q, v}) != heads.end())
                pair.refuse("head dimensions that are not listed yet");
            heads.push_back({q, v});
        }
        for (const std::string& type : entry.at("data_types").texts()) {
            if (!parse_enum<DataType>(type))
                entry.refuse("data types that are known: " + allowed_names<DataType>());
            if (!tables.heads.emplace(type, heads).second)
                entry.refuse("one list of head dimensions for " + type);
        }
    }
}

std::vector<SweepTables::WarpTile> read_warps(const TableNode& node) {
    std::vector<SweepTables::WarpTile> warps;
    for (const TableNode& entry : node.items()) {
        warps.push_back(entry.extents<3>());
        if (std::ranges::count(warps, warps.back()) > 1) entry.refuse("a warp tile that is not listed yet");
    }
    if (warps.empty()) node.refuse("at least one warp tile");
    return warps;
}

std::vector<SweepTables::Block> read_blocks(const TableNode& node) {
    std::vector<SweepTables::Block> blocks;
    for (const TableNode& entry : node.items()) {
        entry.allow_keys({"block", "hdim_q", "k1"});
        blocks.push_back(
            {entry.at("block").extents<3>(), entry.at("hdim_q").extent(), entry.at("k1").extent()});
    }
    return blocks;
}

void read_shared(const TableNode& table, SweepTables& tables) {
    table.allow_keys({"head_dims", "warp_tiles", "other_warp_tiles", "element_bytes", "other_element_bytes",
                      "m0", "n0", "k0", "k0max", "lds_bytes", "k1", "batch_prefill_k1", "combine_head_dims",
                      "wave_warp_additions"});
    tables.source = table.source();
    read_heads(table.at("head_dims"), tables);
    for (const TableNode& entry : table.at("warp_tiles").items()) {
        entry.allow_keys({"data_types", "tiles"});
        for (const std::string& type : entry.at("data_types").texts())
            if (!tables.warp_tiles.emplace(type, read_warps(entry.at("tiles"))).second)
                entry.refuse("one list of warp tiles for " + type);
    }
    tables.other_warp_tiles = read_warps(table.at("other_warp_tiles"));
    for (const std::string& type : table.at("element_bytes").keys())
        tables.element_bytes[type] = table.at("element_bytes").at(type).integer(1, 8);
    tables.other_element_bytes = table.at("other_element_bytes").integer(1, 8);
    tables.m0 = table.at("m0").distinct_integers();
    tables.n0 = table.at("n0").distinct_integers();
    tables.k0 = table.at("k0").distinct_integers();
    for (const TableNode& entry : table.at("k0max").items()) {
        const auto [hdim, padded] = entry.extents<2>();
        if (!tables.k0max.emplace(hdim, padded).second) entry.refuse("one entry for each head dimension");
    }
    const TableNode lds = table.at("lds_bytes");
    lds.allow_keys({"qr", "qs", "other", "async"});
    tables.lds_qr = lds.at("qr").integer(1, 1 << 24);
    tables.lds_qs = lds.at("qs").integer(1, 1 << 24);
    tables.lds_other = lds.at("other").integer(1, 1 << 24);
    tables.lds_async = lds.at("async").integer(1, 1 << 24);
    tables.k1 = read_blocks(table.at("k1"));
    tables.batch_prefill_k1 = read_blocks(table.at("batch_prefill_k1"));
    tables.combine = read_head_list(table.at("combine_head_dims"));
    append_wave_warp(table.at("wave_warp_additions"), tables.backward);
}

void read_own(const TableNode& node, SweepTables& tables) {
    node.allow_keys({"data_types", "tables", "backward", "lds_banks", "async_copy_bytes", "rules", "trload"});
    tables.lds_banks = node.at("lds_banks").integer(1, 1024);
    tables.async_copy_bytes = node.at("async_copy_bytes").integer(1, 64);
    tables.has_trload = node.at("trload").boolean();
    for (const TableNode& entry : node.at("rules").items()) {
        const std::string id = entry.text();
        const auto rule = std::ranges::find(audit_rules(), std::string_view(id), &AuditRuleText::id);
        if (rule == audit_rules().end() || !id.starts_with("SWEEP-")) entry.refuse("the id of a SWEEP- rule");
        tables.rules |= rule_bit(rule->rule);
    }
}

} // namespace

std::span<const SweepTables::WarpTile> SweepTables::warps(DataType type) const {
    const auto found = warp_tiles.find(to_string(type));
    return found != warp_tiles.end() ? found->second : other_warp_tiles;
}

std::int64_t SweepTables::bytes(DataType type) const {
    const auto found = element_bytes.find(to_string(type));
    return found != element_bytes.end() ? found->second : other_element_bytes;
}

std::int16_t SweepTables::padded_head(std::int64_t hdim_q) const {
    const auto found = k0max.find(hdim_q);
    return static_cast<std::int16_t>(found != k0max.end() ? found->second : hdim_q);
}

SweepTables read_sweep_tables(const arch::ArchSet& archs, std::string_view arch_name) {
    if (!arch_name.starts_with("gfx")) archs.at(arch_name).rule_set("sweep");
    SweepTables tables;
    tables.arch = ArchName(arch_name);
    const auto* exact = archs.find(arch_name);
    const bool own = exact != nullptr && exact->has_rule_set("sweep");
    const TableNode node((own ? *exact : archs.at(fallback_types_arch)).rule_set("sweep"));
    tables.data_types = node.at("data_types").data_types();
    tables.backward = read_backward_tables(TableNode(archs.table(node.at("backward").text())));
    read_shared(TableNode(archs.table(node.at("tables").text())), tables);
    if (own)
        read_own(node, tables);
    else if (arch_name.starts_with("gfx9"))
        tables.rules = rule_bit(AuditRule::sweep_mfma) | rule_bit(AuditRule::sweep_async_dma);
    return tables;
}

bool is_fp8_like(DataType type) {
    return to_string(type).find("fp8") != std::string_view::npos || type == DataType::bf8 ||
           type == DataType::mxfp4;
}

} // namespace fmha::catalog::audit
