#include "harness/cases/load.hpp"

#include "harness/cases/case_file.hpp"
#include "harness/cases/case_name.hpp"
#include "harness/cases/check_form.hpp"
#include "harness/cases/shape_matrix.hpp"
#include "harness/cases/utf8.hpp"

#include "dispatcher/types/did_you_mean.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

namespace fmha::harness {
namespace {

namespace fs = std::filesystem;

bool is_matrix(const fs::path& path) {
    return path.extension() == ".yaml" || path.extension() == ".yml";
}

/// The stem of a file: its path below the root without ".json", or the path as given when it lies elsewhere, or nowhere: /dev/stdin may lead to a pipe.
std::string stem_of(const fs::path& path, const fs::path& root) {
    std::error_code nowhere;
    const auto below = fs::weakly_canonical(path, nowhere).lexically_relative(fs::weakly_canonical(root));
    auto stem = below.empty() || *below.begin() == ".." ? path : below;
    if (stem.extension() == ".json") stem.replace_extension();
    return stem.generic_string();
}

/// Throws InputError for a name that journals, stores and reports cannot keep: they would make two cases one, and find neither again.
void require_utf8(const fs::path& path, const std::string& stem) {
    if (!is_utf8(stem)) throw InputError(fmt::format("{}: is not UTF-8; names of cases are", path.string()));
}

CaseFile read_file(const fs::path& path, const fs::path& root) {
    std::string stem = stem_of(path, root);
    require_utf8(path, stem);
    return CaseFile::read(path, std::move(stem));
}

std::vector<fs::path> any_files_below(const fs::path& folder) {
    std::vector<fs::path> files;
    for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::end(entry); ++entry) {
        // Configurations of kernel enumerations live beside the cases and are none.
        if (entry->is_directory() && entry->path().filename() == "sweeps") entry.disable_recursion_pending();
        if (entry->is_regular_file() && entry->path().extension() == ".json") files.push_back(entry->path());
    }
    std::ranges::sort(files);
    return files;
}

std::vector<fs::path> files_below(const fs::path& folder) {
    std::vector<fs::path> files = any_files_below(folder);
    if (files.empty()) throw InputError(fmt::format("{}: the folder has no case file", folder.string()));
    return files;
}

/// Whether a name is one of the working folder, as in a shell: ".", "./NAME", "../NAME".
bool starts_here(const fs::path& name) {
    return !name.empty() && (*name.begin() == "." || *name.begin() == "..");
}

/// The places where the file or folder `name` may be: below the root unless it starts here, or as given, with or without ".json".
std::vector<fs::path> places_of(const std::string& name, const fs::path& root) {
    if (starts_here(name)) return {name, name + ".json"};
    return {root / (name + ".json"), root / name, fs::path(name), fs::path(name + ".json")};
}

/// Names of cases may be longer than those of files.
bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

/// The parts of the name of a case, whose file may have brackets in its own name.
std::optional<SplitName> parts_of(std::string_view name, const fs::path& root) {
    return split_name(name, [&](const std::string& stem) {
        const auto matrix = matrix_path(stem).generic_string();
        return (!matrix.empty() && stem.find_first_of("[@", matrix.size()) == std::string::npos) ||
               std::ranges::any_of(places_of(stem, root), is_there);
    });
}

/// The file or folder that `name` stands for.
fs::path find_path(const std::string& name, const fs::path& root) {
    for (const auto& candidate : places_of(name, root))
        if (is_there(candidate)) return candidate;
    std::vector<std::string> stems;
    if (fs::is_directory(root))
        for (const fs::path& file : any_files_below(root)) stems.push_back(stem_of(file, root));
    throw InputError(fmt::format("{}: no case file, folder or case of that name (looked {}here){}", name,
                                 starts_here(name) ? "" : fmt::format("in {} and ", root.string()),
                                 did_you_mean(name, stems)));
}

/// The case files behind arguments that name files and folders.
std::vector<fs::path> case_files(const std::vector<std::string>& arguments, const fs::path& root) {
    if (arguments.empty()) return files_below(root);
    std::vector<fs::path> files;
    for (const auto& argument : arguments) {
        const auto path = find_path(argument, root);
        if (fs::is_directory(path))
            std::ranges::move(files_below(path), std::back_inserter(files));
        else
            files.push_back(path);
    }
    return files;
}

void add_file(const fs::path& path, const LoadOptions& options, bool named, std::vector<Case>& into) {
    if (is_matrix(path)) {
        require_utf8(path, path.string());
        for (const ApiFamily family : matrix_families()) {
            if (options.family && *options.family != family) continue;
            const auto dims = options.kernel_dims ? options.kernel_dims(family) : KernelDims{};
            std::ranges::move(load_shape_matrix(path, options.tier, dims, family), std::back_inserter(into));
        }
        return;
    }
    const auto file = read_file(path, options.root);
    if (options.family && file.family() != *options.family) return;
    auto cases = file.expand(options.tier, options.planned_tile);
    if (cases.empty() && named)
        throw InputError(fmt::format("{}: has no case up to the tier asked for; its lowest tier is above it",
                                     path.string()));
    std::ranges::move(cases, std::back_inserter(into));
}

} // namespace

std::uint64_t case_seed(std::uint64_t run_seed, std::string_view name) {
    // FNV-1a over the name, then the finaliser of SplitMix64: fixed for ever, since seeds are part of names.
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (const char c : name.substr(0, name.rfind('@')))
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    hash += run_seed * 0x9E3779B97F4A7C15ULL;
    hash = (hash ^ (hash >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    hash = (hash ^ (hash >> 27U)) * 0x94D049BB133111EBULL;
    return hash ^ (hash >> 31U);
}

Case load_case(std::string_view name, const fs::path& root) {
    const auto parts = parts_of(name, root);
    if (!parts) throw InputError(fmt::format("{}: not the name of one case, which ends in \"@seed\"", name));
    if (!matrix_path(parts->stem).empty())
        return load_matrix_case(parts->stem, parts->overrides, parts->seed);
    const auto path = find_path(parts->stem, root);
    if (!fs::is_regular_file(path))
        throw InputError(fmt::format("{}: {} is not a case file", name, path.string()));
    const auto file = read_file(path, root);
    auto concrete = file.from_overrides(parts->overrides, std::string(name));
    if (parts->seed) concrete.seed = *parts->seed;
    concrete.id = file.name(concrete);
    check_form(concrete, concrete.id);
    return concrete;
}

std::vector<Case> load_cases(const std::vector<std::string>& arguments, const LoadOptions& options) {
    if (!fs::is_directory(options.root))
        throw InputError(fmt::format("{}: the folder of case files does not exist", options.root.string()));
    std::vector<Case> cases;
    const auto everything = std::vector<std::string>{options.root.string()};
    for (const auto& argument : arguments.empty() ? everything : arguments) {
        if (!is_there(argument) && parts_of(argument, options.root)) {
            cases.push_back(load_case(argument, options.root));
            if (const ApiFamily family = cases.back().family; family != options.family.value_or(family))
                throw InputError(fmt::format("{}: is a case of {}, not of {}", argument, to_string(family),
                                             to_string(*options.family)));
            continue;
        }
        const auto path = find_path(argument, options.root);
        if (fs::is_directory(path))
            for (const auto& file : files_below(path)) add_file(file, options, /*named=*/false, cases);
        else
            add_file(path, options, /*named=*/true, cases);
    }
    if (options.run_seed)
        for (auto& concrete : cases) {
            concrete.seed = case_seed(*options.run_seed, concrete.id);
            concrete.id = concrete.id.substr(0, concrete.id.rfind('@')) + fmt::format("@{}", concrete.seed);
        }
    std::set<std::string_view> seen;
    for (const auto& concrete : cases)
        if (!seen.insert(concrete.id).second)
            throw InputError(fmt::format("the case {} appears twice", concrete.id));
    return cases;
}

std::vector<std::pair<std::string, PairTable>> pair_tables(const std::vector<std::string>& arguments,
                                                           const LoadOptions& options) {
    std::vector<std::pair<std::string, PairTable>> tables;
    for (const auto& path : case_files(arguments, options.root)) {
        const auto file = read_file(path, options.root);
        if (auto table = file.pairs(options.tier)) tables.emplace_back(file.stem(), std::move(*table));
    }
    return tables;
}

std::vector<std::string> left_out(const std::vector<std::string>& arguments, const LoadOptions& options) {
    std::vector<std::string> sentences;
    for (const auto& argument : arguments) {
        if (!is_there(argument) && parts_of(argument, options.root)) continue;
        const auto path = find_path(argument, options.root);
        if (fs::is_directory(path) || !is_matrix(path)) continue;
        for (const auto& [section, family, shapes] : count_shapes(path, options.tier))
            if (shapes > 0 && options.family && *options.family != family)
                sentences.push_back(
                    fmt::format("{} of {}: {} shapes not run, they are of another family than {}", section,
                                path.generic_string(), shapes, to_string(*options.family)));
    }
    return sentences;
}

Shard parse_shard(std::string_view text) {
    Shard shard;
    const auto slash = text.find('/');
    const auto number = [](std::string_view digits, std::uint64_t& into) {
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), into);
        return error == std::errc{} && end == digits.data() + digits.size();
    };
    if (slash == std::string_view::npos || !number(text.substr(0, slash), shard.index) ||
        !number(text.substr(slash + 1), shard.count) || shard.index < 1 || shard.index > shard.count ||
        shard.count > most_shards)
        throw InputError(fmt::format("--shard: \"{}\" is not allowed; expected i/n with 1 <= i <= n <= {}",
                                     text, most_shards));
    return shard;
}

std::vector<Case> take_shard(const std::vector<Case>& cases, Shard shard) {
    std::vector<Case> mine;
    for (std::size_t i = shard.index - 1; i < cases.size(); i += shard.count) mine.push_back(cases[i]);
    return mine;
}

} // namespace fmha::harness
