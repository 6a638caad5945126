#include "kernels/catalog/ck/tables.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace fmha::catalog::ck {

using nlohmann::json;

namespace {

template <NamedEnum E>
E enum_of(const json& value, const std::string& where) {
    const auto parsed = parse_enum<E>(value.get_ref<const std::string&>(), /*accept_aliases=*/false);
    if (!parsed)
        throw InputError(
            fmt::format("{}: {} is not known; allowed: {}", where, value.dump(), allowed_names<E>()));
    return *parsed;
}

template <NamedEnum E>
std::vector<E> enums_of(const json& values, const std::string& where) {
    std::vector<E> result;
    for (const json& value : values) result.push_back(enum_of<E>(value, where));
    return result;
}

template <NamedEnum E>
void read_axis(const json& axes, const char* key, std::vector<E>& axis, const std::string& where) {
    if (const auto found = axes.find(key); found != axes.end() && found->is_array())
        axis = enums_of<E>(*found, where + "/axes/" + key);
}

void read_axis(const json& axes, const char* key, std::vector<bool>& axis) {
    if (const auto found = axes.find(key); found != axes.end()) axis = found->get<std::vector<bool>>();
}

HeadDims hdim_of(const json& pair) {
    return {pair.at(0), pair.at(1)};
}

std::vector<HeadDims> hdims_of(const json& row, const char* key) {
    std::vector<HeadDims> result;
    if (const auto found = row.find(key); found != row.end())
        for (const json& pair : *found) result.push_back(hdim_of(pair));
    return result;
}

Padding pad_of(const std::string& letters) {
    const auto head = [&](std::size_t i) { return static_cast<std::int8_t>(letters[i] == 't' ? 1 : 0); };
    return {letters[0] == 't', letters[1] == 't', head(2), head(3)};
}

TileEntry tile_of(const json& object, std::string source) {
    TileEntry entry;
    const json& block = object.at("block");
    entry.block = {block[0], block[1], block[2], block[3], block[4], block[5], 0, 0, 0};
    if (const auto waves = object.find("waves"); waves != object.end()) {
        const std::int16_t count = *waves;
        entry.wave = {count, 1, 1, count, 1, 1, 1, 1, 1};
    }
    if (const auto first = object.find("warp"); first != object.end()) {
        const json& w0 = *first;
        const json& w1 = object.contains("warp_pv") ? object.at("warp_pv") : w0;
        entry.warp = {w0[0], w0[1], w0[2], w1[0], w1[1], w1[2], 16, 16, 16};
    }
    entry.block_per_cu = object.value("block_per_cu", -1);
    entry.constraint = Tag(object.value("constraint", std::string()));
    entry.only_custom_factory = object.value("only_custom_factory", false);
    entry.source = std::move(source);
    return entry;
}

PipelineEntry entry_of(const json& object, const std::string& where, std::string source) {
    PipelineEntry entry;
    entry.pipeline = enum_of<Pipeline>(object.at("pipeline"), where);
    entry.pad = pad_of(object.at("pad"));
    if (object.contains("v_layout")) entry.v_layout = enum_of<VLayout>(object.at("v_layout"), where);
    entry.trload = object.value("trload", false);
    entry.static_quant = object.value("static_quant", false);
    entry.only_extended = object.value("only_extended", false);
    if (object.contains("lse")) entry.lse = object.at("lse").get<bool>();
    if (object.contains("rope")) entry.rope = enum_of<Rope>(object.at("rope"), where);
    if (object.contains("bias")) {
        entry.biases = 0;
        for (const BiasType bias : enums_of<BiasType>(object.at("bias"), where))
            entry.biases = static_cast<std::uint8_t>(entry.biases | 1U << static_cast<unsigned>(bias));
    }
    entry.source = std::move(source);
    return entry;
}

PipelineRow pipeline_row(const json& object, const std::string& where) {
    PipelineRow row;
    row.data_types = enums_of<DataType>(object.at("data_types"), where + "/data_types");
    row.hdims = hdims_of(object, "hdims");
    row.except_hdims = hdims_of(object, "except_hdims");
    const json& axes = object.at("axes");
    read_axis(axes, "logits", row.axes.logits);
    read_axis(axes, "qscale", row.axes.qscale, where);
    if (!axes.contains("mask")) row.axes.mask = {MaskClass::none};
    read_axis(axes, "mask", row.axes.mask, where);
    read_axis(axes, "bias", row.axes.bias, where);
    read_axis(axes, "lse", row.axes.lse);
    read_axis(axes, "dropout", row.axes.dropout);
    read_axis(axes, "paged_kv", row.axes.paged_kv);
    read_axis(axes, "skip", row.axes.skip);
    read_axis(axes, "sink", row.axes.sink);
    read_axis(axes, "kv_layout", row.axes.kv_layout, where);
    read_axis(axes, "kv_lookup", row.axes.kv_lookup, where);
    std::size_t index = 0;
    for (const json& entry : object.at("entries")) {
        const std::string path = fmt::format("{}/entries/{}", where, index++);
        row.entries.push_back(entry_of(entry, path, path));
    }
    return row;
}

const Rule* rule_of(const json& id, const std::string& where) {
    for (const Rule& rule : all_rules())
        if (rule.id == id.get_ref<const std::string&>()) return &rule;
    std::string known;
    for (const Rule& rule : all_rules()) known += (known.empty() ? "" : ", ") + std::string(rule.id);
    throw InputError(fmt::format("{}: {} is not a rule; known: {}", where, id.dump(), known));
}

void read_rules(const json& part, const std::string& where, std::vector<const Rule*>& rules) {
    if (const auto found = part.find("rules"); found != part.end())
        for (const json& id : *found) rules.push_back(rule_of(id, where + "/rules"));
}

void merge_tile_row(ForwardTables& tables, const json& object, const std::string& where) {
    const HeadDims hdim = hdim_of(object.at("hdim"));
    const std::string change = object.value("change", std::string());
    for (const DataType type : enums_of<DataType>(object.at("data_types"), where + "/data_types")) {
        auto row = std::find_if(tables.tiles.begin(), tables.tiles.end(), [&](const TileRow& known) {
            return known.data_type == type && known.hdim == hdim;
        });
        if (change.empty() != (row == tables.tiles.end()))
            throw InputError(fmt::format("{}: {} ({},{}) {}", where, to_string(type), hdim.q, hdim.v,
                                         change.empty()
                                             ? "stands in an earlier row; say \"change\": append or replace"
                                             : "has no earlier row to " + change));
        if (change.empty()) row = tables.tiles.insert(tables.tiles.end(), TileRow{type, hdim, {}});
        if (change == "replace") row->tiles.clear();
        std::size_t index = 0;
        for (const json& tile : object.at("tiles"))
            row->tiles.push_back(tile_of(tile, fmt::format("{}/tiles/{}", where, index++)));
    }
}

/// Path of the table file that holds `group`, for messages.
struct NamedGroup {
    const json* value;
    std::string source;
};

NamedGroup group_named(const arch::ArchSet& archs, const std::string& name) {
    for (const arch::Part& part : archs.tables("tables/ck/"))
        if (part.value->at("group") == name) return {part.value, part.source};
    throw InputError(fmt::format("rule set ck has no group \"{}\"", name));
}

void read_forward(const arch::ArchSet& archs, const std::string& group, std::string_view family,
                  ForwardTables& tables) {
    const NamedGroup named = group_named(archs, group);
    const std::string where = fmt::format("{}/families/{}", named.source, family);
    const json& families = named.value->at("families");
    if (!families.contains(std::string(family))) throw InputError(where + ": this base has no such family");
    const json& part = families.at(std::string(family));
    if (part.contains("base")) {
        if (part.at("base") == group) throw InputError(where + "/base: a group cannot be its own base");
        read_forward(archs, part.at("base"), family, tables);
    }
    if (part.contains("data_types"))
        for (const DataType type : enums_of<DataType>(part.at("data_types"), where))
            tables.data_types.push_back(type);
    if (part.contains("modes")) tables.modes = enums_of<Mode>(part.at("modes"), where);
    if (part.contains("page_sizes"))
        tables.page_sizes = part.at("page_sizes").get<std::vector<std::int32_t>>();
    read_rules(part, where, tables.rules);
    std::size_t index = 0;
    if (part.contains("tiles"))
        for (const json& row : part.at("tiles"))
            merge_tile_row(tables, row, fmt::format("{}/tiles/{}", where, index++));
    index = 0;
    if (part.contains("pipelines"))
        for (const json& row : part.at("pipelines"))
            tables.pipelines.push_back(pipeline_row(row, fmt::format("{}/pipelines/{}", where, index++)));
}

void read_backward(const arch::ArchSet& archs, const std::string& group, BackwardTables& tables) {
    const NamedGroup named = group_named(archs, group);
    const std::string where = named.source + "/families/bwd";
    const json& part = named.value->at("families").at("bwd");
    if (part.contains("base")) read_backward(archs, part.at("base"), tables);
    if (part.contains("data_types"))
        for (const DataType type : enums_of<DataType>(part.at("data_types"), where))
            tables.data_types.push_back(type);
    read_rules(part, where, tables.rules);
    std::size_t index = 0;
    for (const json& object : part.at("tiles")) {
        const std::string source = fmt::format("{}/tiles/{}", where, index++);
        const json& b = object.at("block");
        const json& r = object.at("waves");
        const json& w = object.at("warp");
        for (const DataType type : enums_of<DataType>(object.at("data_types"), source))
            tables.tiles.push_back({type,
                                    object.at("hdim"),
                                    {b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8]},
                                    {r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8]},
                                    {w[0], w[1], w[2], w[3], w[4], w[5], w[0], w[1], w[2]},
                                    object.value("block_per_cu", -1),
                                    object.value("max_seq_q", 0),
                                    object.value("trload", false),
                                    source});
    }
}

bool contains(const std::vector<HeadDims>& list, HeadDims hdim) {
    return std::find(list.begin(), list.end(), hdim) != list.end();
}

/// Group table that has `family` with the longest prefix of `target`; null when no table covers it.
const json* find_group(const std::vector<arch::Part>& tables, std::string_view target,
                       const std::string& family) {
    const json* best = nullptr;
    std::size_t best_length = 0;
    for (const arch::Part& part : tables) {
        const auto& prefix = part.value->at("prefix").get_ref<const std::string&>();
        if (target.substr(0, prefix.size()) != prefix || prefix.size() <= best_length) continue;
        if (!part.value->at("families").contains(family)) continue;
        best = part.value;
        best_length = prefix.size();
    }
    return best;
}

std::vector<std::string> group_names(const arch::ArchSet& archs, const Request& request,
                                     const std::string& family, bool all_or_nothing) {
    const std::vector<arch::Part> tables = archs.tables("tables/ck/");
    std::vector<std::string> names;
    for (const ArchName& target : request.targets) {
        const json* group = find_group(tables, target, family);
        if (group == nullptr && all_or_nothing) return {};
        if (group == nullptr) {
            std::string known;
            for (const arch::Part& part : tables)
                if (part.value->at("families").contains(family))
                    known += (known.empty() ? "" : ", ") + part.value->at("prefix").get<std::string>();
            throw InputError(fmt::format("rule set ck has no {} tables for target \"{}\"; known prefixes: {}",
                                         family, target.view(), known));
        }
        const auto& name = group->at("group").get_ref<const std::string&>();
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    std::stable_sort(names.begin(), names.end(),
                     [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
    return names;
}

} // namespace

bool PipelineRow::applies_to(DataType type, HeadDims hdim) const {
    return std::find(data_types.begin(), data_types.end(), type) != data_types.end() &&
           (hdims.empty() || contains(hdims, hdim)) && !contains(except_hdims, hdim);
}

std::vector<ForwardGroup> forward_groups(const arch::ArchSet& archs, const Request& request,
                                         KernelFamily family) {
    const std::string key(to_string(family));
    std::vector<std::string> names = group_names(archs, request, key, family == KernelFamily::batch_prefill);
    if (request.custom_factory && family == KernelFamily::fwd) names = {"gfx9"};
    std::vector<ForwardGroup> groups;
    for (const std::string& name : names) {
        ForwardGroup& group = groups.emplace_back();
        if (family != KernelFamily::batch_prefill) group.name = ArchName(name);
        read_forward(archs, name, key, group.tables);
    }
    return groups;
}

std::vector<BackwardGroup> backward_groups(const arch::ArchSet& archs, const Request& request) {
    std::vector<BackwardGroup> groups;
    for (const std::string& name : group_names(archs, request, "bwd", false)) {
        BackwardGroup& group = groups.emplace_back();
        group.name = ArchName(name);
        read_backward(archs, name, group.tables);
    }
    return groups;
}

} // namespace fmha::catalog::ck
