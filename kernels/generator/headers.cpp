#include "kernels/generator/headers.hpp"

#include "dispatcher/system/files.hpp"
#include "dispatcher/system/program.hpp"
#include "dispatcher/system/sha256.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

namespace fmha::generator {

namespace fs = std::filesystem;

fs::path kernel_root(const std::string& given) {
    const auto holds = [](const fs::path& root) {
        std::error_code ignored;
        return fs::is_regular_file(root / entry_header, ignored);
    };
    if (!given.empty()) {
        if (holds(given)) return fs::absolute(given);
        throw InputError(fmt::format("--root {}: holds no {}", given, entry_header));
    }
    if (const char* set = std::getenv("FMHA_KERNEL_ROOT"); set != nullptr && *set != '\0') {
        if (holds(set)) return fs::absolute(set);
        throw InputError(fmt::format("FMHA_KERNEL_ROOT={}: holds no {}", set, entry_header));
    }
    const fs::path installed = system::program_path().parent_path().parent_path() / FMHA_INSTALLED_HEADERS;
    for (const fs::path& root : {installed, fs::path(FMHA_SOURCE_DIR)})
        if (holds(root)) return root;
    throw InputError(
        fmt::format("the headers of the kernels ({}) are neither under {} nor under {}; give --root or set "
                    "FMHA_KERNEL_ROOT",
                    entry_header, installed.string(), FMHA_SOURCE_DIR));
}

namespace {

/// The file that a line includes in quotes.
std::optional<std::string_view> quoted_include(std::string_view line) {
    const auto skip = [&](std::string_view expected) {
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        const bool found = line.starts_with(expected);
        if (found) line.remove_prefix(expected.size());
        return found;
    };
    if (!skip("#") || !skip("include") || !skip("\"")) return std::nullopt;
    const auto end = line.find('"');
    if (end == 0 || end == std::string_view::npos) return std::nullopt;
    return line.substr(0, end);
}

/// The files that rows of a table include (dispatcher/types/include_files.hpp): a line with `FMHA_QUOTED(folder/fmha_##name.hpp)` stands for
/// all files of the folder whose names begin and end so.
std::vector<fs::path> included_by_rows(const fs::path& root, std::string_view line) {
    constexpr std::string_view opening = "FMHA_QUOTED(", row = "name";
    const auto begin = line.find(opening);
    if (begin == std::string_view::npos) return {};
    line.remove_prefix(begin + opening.size());
    const auto name = line.find(row), end = line.find(')');
    if (name > end || end == std::string_view::npos) return {};
    const fs::path before(line.substr(0, line.find_last_not_of('#', name - 1) + 1));
    const std::string first = before.filename().string(),
                      last(line.substr(name + row.size(), end - name - row.size()));
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(root / before.parent_path())) {
        const std::string file = entry.path().filename().string();
        if (file.starts_with(first) && file.ends_with(last)) found.push_back(before.parent_path() / file);
    }
    std::ranges::sort(found);
    return found;
}

} // namespace

std::vector<std::string> headers_of(const fs::path& root) {
    std::vector<std::string> found{std::string(entry_header)};
    std::set<std::string> seen(found.begin(), found.end());
    for (std::size_t i = 0; i < found.size(); ++i) {
        const fs::path header = found[i];
        const std::string text = system::read_file(root / header);
        std::istringstream lines(text);
        const auto add = [&](const fs::path& file) {
            if (seen.insert(file.generic_string()).second) found.push_back(file.generic_string());
        };
        for (std::string line; std::getline(lines, line);) {
            for (const fs::path& file : included_by_rows(root, line)) add(file);
            const auto included = quoted_include(line);
            if (!included) continue;
            const std::string name(*included);
            // As the compiler looks: beside the file, then from the root.
            for (const fs::path& place : {(header.parent_path() / name).lexically_normal(), fs::path(name)})
                if (fs::is_regular_file(root / place)) {
                    add(place);
                    break;
                }
        }
    }
    return found;
}

std::string headers_digest(const fs::path& root) {
    auto headers = headers_of(root);
    std::ranges::sort(headers);
    std::string all;
    for (const std::string& header : headers)
        all += fmt::format("{} {}\n", header, system::sha256(system::read_file(root / header)));
    return system::sha256(all);
}

} // namespace fmha::generator
