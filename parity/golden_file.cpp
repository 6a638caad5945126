#include "parity/golden_file.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/json.hpp"
#include "parity/digest.hpp"
#include "parity/listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace fmha::parity {
namespace {
using catalog::MaskVocabulary;
using catalog::ProfileId;
using catalog::RuleSet;

std::filesystem::path file_of(const std::filesystem::path& directory, RuleSet rules, const ArchName& arch,
                              std::string_view extension) {
    return directory / std::string(to_string(rules)) / (arch.str() + std::string(extension));
}

std::string json_text(std::string_view text) {
    return Json(std::string(text)).dump();
}

template <NamedEnum E>
E parse_or_throw(std::string_view text, const std::string& where) {
    if (const auto value = parse_enum<E>(text, false)) return *value;
    throw InputError(fmt::format("{}: \"{}\" is not known; allowed: {}", where, text, allowed_names<E>()));
}

/// The lists of one family: each distinct list once, with the profiles that have it.
std::string family_text(const Facts& facts, MaskVocabulary masks, KernelFamily family) {
    std::vector<std::pair<Fact, std::string>> rows;
    for (const catalog::ProfileRow& profile : catalog::profiles()) {
        const auto fact = facts.lists.find({masks, family, profile.id});
        if (fact == facts.lists.end()) continue;
        auto row =
            std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == fact->second; });
        if (row == rows.end()) row = rows.insert(row, {fact->second, {}});
        if (!row->second.empty()) row->second += ' ';
        row->second += to_string(profile.id);
    }
    std::string text;
    for (const auto& [fact, profiles] : rows) {
        text += fmt::format("{}        {{\"kernels\": {}", text.empty() ? "" : ",\n", fact.kernels);
        if (!fact.emission.empty())
            text += fmt::format(", \"sorted\": \"{}\", \"emission\": \"{}\"", fact.sorted, fact.emission);
        text += fmt::format(", \"profiles\": \"{}\"}}", profiles);
    }
    return text;
}

/// A line for each family and column.
std::string values_text(const Facts& facts) {
    std::string text;
    const ValueKey* before = nullptr;
    for (const auto& [key, records] : facts.values) {
        const bool same_family = before != nullptr && before->family == key.family;
        const bool same_column = same_family && before->column == key.column;
        if (!same_family)
            text += fmt::format("{}\n    \"{}\": {{", before == nullptr ? "" : "}\n    },",
                                to_string(key.family));
        if (!same_column) text += fmt::format("{}\n      \"{}\": {{", same_family ? "}," : "", key.column);
        text += fmt::format("{}{}: {}", same_column ? ", " : "", json_text(key.value), records);
        before = &key;
    }
    return before == nullptr ? text : text + "}\n    }\n  ";
}

std::string golden_text(const GoldenFile& golden) {
    const Facts& facts = golden.facts;
    std::string text = fmt::format("{{\n  \"rules\": \"{}\",\n  \"arch\": \"{}\",\n  \"accepted\": [",
                                   to_string(facts.rules), facts.arch.view());
    for (std::size_t i = 0; i < golden.accepted.size(); ++i) {
        const Acceptance& entry = golden.accepted[i];
        text += fmt::format("{}\n    {{\"date\": {}, \"changes\": {}, \"reason\": {}}}", i > 0 ? "," : "",
                            json_text(entry.date), entry.changes, json_text(entry.reason));
    }
    text += "\n  ],\n  \"violations\": {";
    bool first = true;
    for (const auto& [rule, records] : facts.violations)
        text += fmt::format("{}\n    \"{}\": {}", std::exchange(first, false) ? "" : ",", rule, records);
    text +=
        fmt::format("{}}},\n  \"values\": {{{}}},\n  \"lists\": {{", first ? "" : "\n  ", values_text(facts));
    bool first_vocabulary = true;
    for (const auto& [masks, vocabulary] : EnumTable<MaskVocabulary>::names) {
        std::string families;
        for (const auto& [family, name] : EnumTable<KernelFamily>::names) {
            const auto rows = family_text(facts, masks, family);
            if (rows.empty()) continue;
            families +=
                fmt::format("{}      \"{}\": [\n{}\n      ]", families.empty() ? "" : ",\n", name, rows);
        }
        if (families.empty()) continue;
        text += fmt::format("{}\n    \"{}\": {{\n{}\n    }}",
                            std::exchange(first_vocabulary, false) ? "" : ",", vocabulary, families);
    }
    return text + "\n  }\n}\n";
}

void read_row(const Json& row, MaskVocabulary masks, KernelFamily family, const std::string& where,
              Facts& facts) {
    Fact fact;
    fact.kernels = row.at("kernels").get<std::int64_t>();
    fact.sorted = row.value("sorted", std::string());
    fact.emission = row.value("emission", std::string());
    std::istringstream names(row.at("profiles").get<std::string>());
    for (std::string name; names >> name;) {
        const FactKey key{masks, family, parse_or_throw<ProfileId>(name, where)};
        if (!facts.lists.emplace(key, fact).second)
            throw InputError(fmt::format("{}: profile \"{}\" stands in two lists", where, name));
    }
}

GoldenFile parse_golden(const std::string& text, const std::string& file) {
    GoldenFile golden;
    try {
        const auto document = Json::parse(text);
        golden.facts.rules = parse_or_throw<RuleSet>(document.at("rules").get<std::string>(), file);
        golden.facts.arch = ArchName(document.at("arch").get<std::string>());
        for (const auto& entry : document.at("accepted"))
            golden.accepted.push_back({entry.at("date").get<std::string>(),
                                       entry.at("reason").get<std::string>(),
                                       entry.at("changes").get<std::int64_t>()});
        for (const auto& [rule, records] : document.at("violations").items())
            golden.facts.violations[rule] = records.get<std::int64_t>();
        for (const auto& [family, columns] : document.at("values").items())
            for (const auto& [column, values] : columns.items())
                for (const auto& [value, records] : values.items())
                    golden.facts.values[{parse_or_throw<KernelFamily>(family, file), column, value}] =
                        records.get<std::int64_t>();
        for (const auto& [vocabulary, families] : document.at("lists").items())
            for (const auto& [family, rows] : families.items())
                for (const auto& row : rows)
                    read_row(row, parse_or_throw<MaskVocabulary>(vocabulary, file),
                             parse_or_throw<KernelFamily>(family, file), fmt::format("{}: {}", file, family),
                             golden.facts);
    } catch (const JsonError& error) {
        throw InputError(fmt::format("{}: {}", file, error.what()));
    }
    return golden;
}

/// The listing must be the set that the facts describe: one family's digest after the other would need the
/// family of each name, so the number of names and the joint digest in the first line are compared.
std::string listing_header(const std::vector<std::string>& sorted_names) {
    NameDigest digest;
    for (const auto& name : sorted_names) digest.add(name);
    return fmt::format("{} names, sorted sha256 {}\n", sorted_names.size(), digest.finish());
}

std::vector<std::string> read_listing(const std::filesystem::path& file) {
    const std::string text = system::read_file(file);
    const auto header_size = std::min(text.find('\n') + 1, text.size());
    auto names = parse_listing(std::string_view(text).substr(header_size), file.string());
    if (listing_header(names) != text.substr(0, header_size))
        throw InputError(
            fmt::format("{}: the names are not those that its first line describes; golden files are "
                        "written by `fmha parity --accept`, never by hand",
                        file.string()));
    return names;
}

} // namespace

std::optional<GoldenFile> read_golden(const std::filesystem::path& directory, RuleSet rules,
                                      const ArchName& arch) {
    const auto file = file_of(directory, rules, arch, ".json");
    if (!std::filesystem::exists(file)) return std::nullopt;
    GoldenFile golden = parse_golden(system::read_file(file), file.string());
    if (golden.facts.rules != rules || golden.facts.arch != arch)
        throw InputError(fmt::format("{}: describes {} on {}", file.string(), to_string(golden.facts.rules),
                                     golden.facts.arch.view()));
    if (!keeps_names(rules)) return golden;
    golden.names = read_listing(file_of(directory, rules, arch, ".names"));
    std::size_t expected = 0;
    const auto reference = reference_request(rules, arch);
    for (const auto& [key, fact] : golden.facts.lists)
        if (key.profile == reference.profile.id && key.masks == reference.masks)
            expected += static_cast<std::size_t>(fact.kernels);
    if (expected != golden.names.size())
        throw InputError(fmt::format("{}: {} kernels in profile {}, but the listing beside it has {} names",
                                     file.string(), expected, to_string(reference.profile.id),
                                     golden.names.size()));
    return golden;
}

void write_golden(const std::filesystem::path& directory, const GoldenFile& golden) {
    const Facts& facts = golden.facts;
    system::write_file(file_of(directory, facts.rules, facts.arch, ".json"), golden_text(golden));
    if (!keeps_names(facts.rules)) return;
    auto names = golden.names;
    std::sort(names.begin(), names.end());
    const auto header = listing_header(names);
    system::write_file(file_of(directory, facts.rules, facts.arch, ".names"),
                       header + write_listing(std::move(names)));
}

std::vector<std::pair<RuleSet, ArchName>> golden_files(const std::filesystem::path& directory) {
    std::vector<std::pair<RuleSet, ArchName>> found;
    for (const auto& [rules, name] : EnumTable<RuleSet>::names) {
        const auto folder = directory / std::string(name);
        if (!std::filesystem::is_directory(folder)) continue;
        for (const auto& entry : std::filesystem::directory_iterator(folder))
            if (entry.path().extension() == ".json")
                found.emplace_back(rules, ArchName(entry.path().stem().string()));
    }
    std::sort(found.begin(), found.end());
    return found;
}

} // namespace fmha::parity
