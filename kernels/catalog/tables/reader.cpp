#include "kernels/catalog/tables/reader.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fmha::catalog::tables {

namespace {

template <NamedEnum E>
E enum_of(const Json& value, const std::string& where) {
    const auto parsed = parse_enum<E>(value.text(), /*accept_aliases=*/false);
    if (!parsed)
        throw InputError(
            fmt::format("{}: {} is not known; allowed: {}", where, value.dump(), allowed_names<E>()));
    return *parsed;
}

template <NamedEnum E>
std::vector<E> enums_of(const Json& values, const std::string& where) {
    std::vector<E> result;
    for (const Json& value : values) result.push_back(enum_of<E>(value, where));
    return result;
}

template <NamedEnum E>
void read_axis(const Json& axes, const char* key, std::vector<E>& axis, const std::string& where) {
    if (const auto found = axes.find(key); found != axes.end() && found->is_array())
        axis = enums_of<E>(*found, where + "/axes/" + key);
}

void read_axis(const Json& axes, const char* key, std::vector<bool>& axis) {
    if (const auto found = axes.find(key); found != axes.end()) axis = found->get<std::vector<bool>>();
}

HeadDims hdim_of(const Json& pair) {
    const auto [q, v] = pair.get<std::pair<std::int16_t, std::int16_t>>();
    return {q, v};
}

std::vector<HeadDims> hdims_of(const Json& row, const char* key) {
    std::vector<HeadDims> result;
    if (const auto found = row.find(key); found != row.end())
        for (const Json& pair : *found) result.push_back(hdim_of(pair));
    return result;
}

/// A list of `count` extents.
std::vector<std::int16_t> extents_of(const Json& list, std::size_t count) {
    auto extents = list.get<std::vector<std::int16_t>>();
    if (extents.size() != count)
        throw InputError(fmt::format("{} is not a list of {} extents", list.dump(), count));
    return extents;
}

Padding pad_of(const std::string& letters) {
    const auto head = [&](std::size_t i) { return static_cast<std::int8_t>(letters[i] == 't' ? 1 : 0); };
    return {letters[0] == 't', letters[1] == 't', head(2), head(3)};
}

TileEntry tile_of(const Json& object, std::string source) {
    TileEntry entry;
    const std::vector<std::int16_t> block = extents_of(object.at("block"), 6);
    entry.block = {block[0], block[1], block[2], block[3], block[4], block[5], 0, 0, 0};
    if (const auto waves = object.find("waves"); waves != object.end()) {
        const auto count = waves->get<std::int16_t>();
        const auto along_keys = object.value<std::int16_t>("key_waves", 1);
        entry.wave = {count, along_keys, 1, count, 1, along_keys, 1, 1, 1};
    }
    if (const auto first = object.find("warp"); first != object.end()) {
        const std::vector<std::int16_t> w0 = extents_of(*first, 3);
        const std::vector<std::int16_t> w1 =
            object.contains("warp_pv") ? extents_of(object.at("warp_pv"), 3) : w0;
        entry.warp = {w0[0], w0[1], w0[2], w1[0], w1[1], w1[2], 16, 16, 16};
    }
    entry.block_per_cu = object.value("block_per_cu", -1);
    entry.max_seq_q = object.value("max_seq_q", 0);
    entry.constraint = Tag(object.value("constraint", std::string()));
    entry.rank = object.value("rank", 0);
    entry.only_custom_factory = object.value("only_custom_factory", false);
    entry.source = std::move(source);
    return entry;
}

PipelineEntry entry_of(const Json& object, const std::string& where, std::string source) {
    PipelineEntry entry;
    entry.pipeline = enum_of<Pipeline>(object.at("pipeline"), where);
    entry.pad = pad_of(object.at("pad").text());
    if (object.contains("v_layout")) entry.v_layout = enum_of<VLayout>(object.at("v_layout"), where);
    entry.trload = object.value("trload", false);
    entry.static_quant = object.value("static_quant", false);
    entry.only_extended = object.value("only_extended", false);
    entry.rank = object.value("rank", 0);
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

PipelineRow pipeline_row(const Json& object, const std::string& where) {
    PipelineRow row;
    row.data_types = enums_of<DataType>(object.at("data_types"), where + "/data_types");
    row.hdims = hdims_of(object, "hdims");
    row.except_hdims = hdims_of(object, "except_hdims");
    const Json& axes = object.at("axes");
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
    for (const Json& entry : object.at("entries")) {
        const std::string path = fmt::format("{}/entries/{}", where, index++);
        row.entries.push_back(entry_of(entry, path, path));
        row.entries.back().id = object.value("id", std::string());
    }
    return row;
}

void merge_tile_row(ForwardTables& tables, const Json& object, const std::string& where) {
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
        for (const Json& tile : object.at("tiles"))
            row->tiles.push_back(tile_of(tile, fmt::format("{}/tiles/{}", where, index++)));
    }
}

BackwardTile backward_tile(const Json& object, DataType type, const std::string& source) {
    const std::vector<std::int16_t> b = extents_of(object.at("block"), 9);
    const std::vector<std::int16_t> r = extents_of(object.at("waves"), 9);
    const std::vector<std::int16_t> w = extents_of(object.at("warp"), 6);
    BackwardTile tile;
    tile.data_type = type;
    tile.hdim = object.at("hdim").get<std::int16_t>();
    tile.block = {b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8]};
    tile.wave = {r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8]};
    // The last product shares the first one's instruction, shortened where its own step is shorter.
    tile.warp = {w[0], w[1], w[2], w[3], w[4], w[5], w[0], w[1], std::min(w[2], tile.block.b6)};
    tile.block_per_cu = object.value("block_per_cu", -1);
    tile.max_seq_q = object.value("max_seq_q", 0);
    tile.trload = object.value("trload", false);
    tile.source = source;
    return tile;
}

bool contains(const std::vector<HeadDims>& list, HeadDims hdim) {
    return std::find(list.begin(), list.end(), hdim) != list.end();
}

} // namespace

bool PipelineRow::applies_to(DataType type, HeadDims hdim) const {
    return std::find(data_types.begin(), data_types.end(), type) != data_types.end() &&
           (hdims.empty() || contains(hdims, hdim)) && !contains(except_hdims, hdim);
}

Reader::Reader(const arch::ArchSet& archs, std::string folder, std::span<const Rule> rules)
    : archs_(archs), folder_(std::move(folder)), rules_(rules) {}

const Rule* Reader::rule_of(const Json& id, const std::string& where) const {
    for (const Rule& rule : rules_)
        if (rule.id == id.text()) return &rule;
    std::string known;
    for (const Rule& rule : rules_) known += fmt::format("{}{}", known.empty() ? "" : ", ", rule.id);
    throw InputError(fmt::format("{}: {} is not a rule; known: {}", where, id.dump(), known));
}

void Reader::read_rules(const Json& part, const std::string& where, std::vector<const Rule*>& rules) const {
    if (const auto found = part.find("rules"); found != part.end())
        for (const Json& id : *found) rules.push_back(rule_of(id, where + "/rules"));
}

arch::Part Reader::family_part(const std::string& group, std::string_view family) const {
    const arch::Part table = archs_.table(fmt::format("{}{}.json", folder_, group));
    const Json& families = table.value->at("families");
    const auto found = families.find(std::string(family));
    if (found == families.end())
        throw InputError(fmt::format("{}/families: this group has no family \"{}\"", table.source, family));
    return {&*found, fmt::format("{}/families/{}", table.source, family)};
}

std::vector<std::string> Reader::chain(const std::string& group, std::string_view family) const {
    std::vector<std::string> groups{group};
    for (;;) {
        const arch::Part part = family_part(groups.back(), family);
        const auto base = part.value->find("base");
        if (base == part.value->end()) break;
        if (std::find(groups.begin(), groups.end(), base->text()) != groups.end())
            throw InputError(fmt::format("{}/base: {} closes a circle of bases", part.source, base->dump()));
        groups.push_back(base->text());
    }
    std::reverse(groups.begin(), groups.end());
    return groups;
}

std::pair<Reader, std::string> Reader::imported(const Json& path, const std::string& where) const {
    const auto& text = path.text(); // "tables/ck/gfx9.json" is group gfx9 of folder tables/ck/
    if (std::find(imports_.begin(), imports_.end(), text) != imports_.end())
        throw InputError(fmt::format("{}/import_tiles: {} closes a circle of imports", where, path.dump()));
    const std::size_t slash = text.rfind('/') + 1;
    Reader reader(archs_, text.substr(0, slash), rules_);
    reader.imports_ = imports_;
    reader.imports_.push_back(text);
    return {std::move(reader), text.substr(slash, text.rfind('.') - slash)};
}

ForwardTables Reader::forward(const std::string& group, KernelFamily family) const {
    const std::string_view key = to_string(family);
    ForwardTables tables;
    for (const std::string& link : chain(group, key)) {
        const auto [value, where] = family_part(link, key);
        const Json& part = *value;
        if (part.contains("data_types"))
            for (const DataType type : enums_of<DataType>(part.at("data_types"), where))
                tables.data_types.push_back(type);
        if (part.contains("modes")) tables.modes = enums_of<Mode>(part.at("modes"), where);
        if (part.contains("page_sizes"))
            tables.page_sizes = part.at("page_sizes").get<std::vector<std::int32_t>>();
        read_rules(part, where, tables.rules);
        if (part.contains("import_tiles")) {
            const auto [reader, name] = imported(part.at("import_tiles"), where);
            for (TileRow& row : reader.forward(name, family).tiles) tables.tiles.push_back(std::move(row));
        }
        std::size_t index = 0;
        if (part.contains("tiles"))
            for (const Json& row : part.at("tiles"))
                merge_tile_row(tables, row, fmt::format("{}/tiles/{}", where, index++));
        index = 0;
        if (part.contains("pipelines"))
            for (const Json& row : part.at("pipelines"))
                tables.pipelines.push_back(pipeline_row(row, fmt::format("{}/pipelines/{}", where, index++)));
    }
    return tables;
}

BackwardTables Reader::backward(const std::string& group) const {
    BackwardTables tables;
    for (const std::string& link : chain(group, "bwd")) {
        const auto [value, where] = family_part(link, "bwd");
        const Json& part = *value;
        if (part.contains("data_types"))
            for (const DataType type : enums_of<DataType>(part.at("data_types"), where))
                tables.data_types.push_back(type);
        read_rules(part, where, tables.rules);
        if (part.contains("import_tiles")) {
            const auto [reader, name] = imported(part.at("import_tiles"), where);
            for (BackwardTile& tile : reader.backward(name).tiles) tables.tiles.push_back(std::move(tile));
        }
        std::size_t index = 0;
        if (part.contains("tiles"))
            for (const Json& object : part.at("tiles")) {
                const std::string source = fmt::format("{}/tiles/{}", where, index++);
                for (const DataType type : enums_of<DataType>(object.at("data_types"), source))
                    tables.tiles.push_back(backward_tile(object, type, source));
            }
    }
    return tables;
}

} // namespace fmha::catalog::tables
