#include "kernels/arch/arch.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/arch/schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <ranges>

namespace fmha::arch {

namespace {

template <NamedEnum E>
std::uint32_t bits_of(const Json& names, const std::string& where) {
    std::uint32_t bits = 0;
    for (const Json& name : names) {
        const auto value = parse_enum<E>(name.get<std::string>(), /*accept_aliases=*/false);
        if (!value)
            throw InputError(
                fmt::format("{}: {} is not known; allowed: {}", where, name.dump(), allowed_names<E>()));
        bits |= 1U << static_cast<unsigned>(*value);
    }
    return bits;
}

Hardware parse_hardware(const Json& document, std::string_view file) {
    const Json& part = document.at("hardware");
    const std::string where = std::string(file) + "#/hardware";
    Hardware hardware;
    hardware.vendor = part.at("vendor") == "nvidia" ? Vendor::nvidia : Vendor::amd;
    hardware.limits.arch = ArchName(document.at("arch").get<std::string>());
    hardware.limits.data_types = bits_of<DataType>(part.at("data_types"), where + "/data_types");
    hardware.limits.pipelines = bits_of<Pipeline>(part.at("pipelines"), where + "/pipelines");
    hardware.limits.is_cdna = part.at("matrix_unit") == "mfma";
    hardware.limits.lds_bytes = part.at("lds_bytes").get<std::int64_t>();
    hardware.limits.compute_units = part.at("compute_units").get<std::int64_t>();
    hardware.wave_size = part.at("wave_size").get<std::int32_t>();
    hardware.registers_per_lane = part.at("registers_per_lane").get<std::int32_t>();
    hardware.max_waves_per_group = part.at("max_waves_per_group").get<std::int32_t>();
    for (const Json& row : part.at("matrix_instructions")) {
        const auto shape = row.at("shape").get<std::vector<std::int16_t>>();
        hardware.matrix_instructions.push_back(
            {shape.at(0), shape.at(1), shape.at(2),
             bits_of<DataType>(row.at("data_types"), where + "/matrix_instructions")});
    }
    return hardware;
}

Json parse_text(const ArchSet::File& file) {
    try {
        return Json::parse(file.text);
    } catch (const JsonError& error) {
        throw InputError(fmt::format("{}: {}", file.path, error.what()));
    }
}

/// The schema of a file by its folder; the two rule sets of kernel tables share one.
std::string schema_path(std::string_view path) {
    if (!path.starts_with("tables/")) return "schema/arch.json";
    const std::string_view rest = path.substr(7);
    const std::string_view folder = rest.substr(0, rest.find('/'));
    return fmt::format("schema/{}.json", folder == "ck" || folder == "house" ? "kernels" : folder);
}

std::map<std::string_view, std::string_view> built_in_schemas() {
    std::map<std::string_view, std::string_view> schemas;
    for (const ArchSet::File& file : ArchSet::built_in_files())
        if (file.path.starts_with("schema/")) schemas.emplace(file.path, file.text);
    return schemas;
}

} // namespace

ArchTables::ArchTables(std::string file, std::shared_ptr<const Json> document, Hardware hardware)
    : file_(std::move(file)), document_(std::move(document)), hardware_(std::move(hardware)) {}

bool ArchTables::has_rule_set(std::string_view rule_set) const {
    return document_->at("rule_sets").contains(std::string(rule_set));
}

Part ArchTables::rule_set(std::string_view rule_set) const {
    const Json& sets = document_->at("rule_sets");
    const auto found = sets.find(std::string(rule_set));
    if (found == sets.end())
        throw InputError(
            fmt::format("{}#/rule_sets: no rule set \"{}\" for {}", file_, rule_set, name().view()));
    return {&*found, fmt::format("{}#/rule_sets/{}", file_, rule_set)};
}

struct ArchSet::Data {
    std::vector<ArchTables> archs;
    std::map<std::string, Json, std::less<>> tables;
};

ArchSet ArchSet::parse(std::span<const File> files, bool validate) {
    const auto schemas = validate ? built_in_schemas() : std::map<std::string_view, std::string_view>{};
    const auto data = std::make_shared<Data>();
    for (const File& file : files) {
        if (file.path.starts_with("schema/")) continue;
        Json document = parse_text(file);
        if (validate) {
            const auto schema = schemas.find(schema_path(file.path));
            if (schema == schemas.end())
                throw InputError(
                    fmt::format("{}: no schema {} describes this table", file.path, schema_path(file.path)));
            check_schema(std::string(file.path), file.text, schema->second);
        }
        if (file.path.starts_with("tables/")) {
            data->tables.emplace(std::string(file.path), std::move(document));
            continue;
        }
        Hardware hardware = parse_hardware(document, file.path);
        for (const ArchTables& other : data->archs)
            if (other.name() == hardware.limits.arch)
                throw InputError(fmt::format("{}#/arch: \"{}\" is already described by {}", file.path,
                                             other.name().view(), other.file()));
        data->archs.emplace_back(std::string(file.path), std::make_shared<const Json>(std::move(document)),
                                 std::move(hardware));
    }
    if (data->archs.empty()) throw InputError("no architecture file found");
    std::sort(data->archs.begin(), data->archs.end(),
              [](const ArchTables& a, const ArchTables& b) { return a.name() < b.name(); });
    ArchSet set;
    set.data_ = data;
    for (const ArchTables& arch : data->archs)
        for (const RuleSetTable& table : set.tables_named_by(arch)) set.table(table.path);
    return set;
}

std::vector<ArchSet::RuleSetTable> ArchSet::tables_named_by(const ArchTables& arch) const {
    std::vector<RuleSetTable> named;
    for (const char* rule_set : {"ck", "claim", "stored", "sweep", "house"}) {
        if (!arch.has_rule_set(rule_set)) continue;
        const Json& paths = *arch.rule_set(rule_set).value;
        if (!paths.is_array()) continue;
        for (const Json& path : paths)
            if (path.is_string()) named.push_back({rule_set, path.get<std::string>()});
    }
    return named;
}

ArchSet ArchSet::built_in() {
    return parse(built_in_files(), /*validate=*/false);
}

ArchSet ArchSet::load(const std::filesystem::path& directory) {
    namespace fs = std::filesystem;
    if (!fs::is_directory(directory))
        throw InputError(fmt::format("{}: not a folder of architecture files", directory.string()));
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(directory))
        if (entry.path().extension() == ".json") paths.push_back(entry.path());
    if (fs::is_directory(directory / "tables"))
        for (const auto& entry : fs::recursive_directory_iterator(directory / "tables"))
            if (entry.path().extension() == ".json") paths.push_back(entry.path());
    if (paths.empty())
        throw InputError(fmt::format("{}: the folder holds no architecture file", directory.string()));
    std::sort(paths.begin(), paths.end());

    std::deque<std::string> texts; // stable addresses: the files refer to them
    std::vector<File> files;
    for (const fs::path& path : paths) {
        texts.push_back(system::read_file(path));
        texts.push_back(fs::relative(path, directory).generic_string());
        files.push_back({texts.back(), texts[texts.size() - 2]});
    }
    return parse(files, /*validate=*/true);
}

std::span<const ArchTables> ArchSet::all() const {
    return data_->archs;
}

const ArchTables* ArchSet::find(std::string_view name) const {
    for (const ArchTables& arch : data_->archs)
        if (arch.name().view() == name) return &arch;
    return nullptr;
}

const ArchTables& ArchSet::at(std::string_view name) const {
    if (const ArchTables* arch = find(name)) return *arch;
    // As rocminfo writes it, gfx942:sramecc+:xnack-, or in capitals.
    std::string plain(name.substr(0, name.find(':')));
    for (char& letter : plain)
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    std::vector<std::string_view> known;
    for (const ArchTables& arch : data_->archs) known.push_back(arch.name().view());
    const std::string hint =
        find(plain) == nullptr ? std::string() : fmt::format("; did you mean {}?", plain);
    throw InputError(
        fmt::format("architecture \"{}\" has no file; known: {}{}", name, fmt::join(known, ", "), hint));
}

Part ArchSet::table(std::string_view path) const {
    const auto found = data_->tables.find(path);
    if (found == data_->tables.end())
        throw InputError(fmt::format("table \"{}\" does not exist; known: {}", path,
                                     fmt::join(std::views::keys(data_->tables), ", ")));
    return {&found->second, found->first + "#"};
}

std::vector<Part> ArchSet::tables(std::string_view prefix) const {
    std::vector<Part> parts;
    for (const auto& [path, value] : data_->tables)
        if (path.starts_with(prefix)) parts.push_back({&value, path + "#"});
    return parts;
}

} // namespace fmha::arch
