#include "parity/listing.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

namespace fmha::parity {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// A token that says how large something is (`b128x64x16x32x32x32`, `t64x…`, `w32x32x16`): digits, 'x',
/// digits.
bool is_extent(std::string_view token) {
    for (std::size_t x = token.find('x'); x != std::string_view::npos; x = token.find('x', x + 1))
        if (x > 0 && x + 1 < token.size() && is_digit(token[x - 1]) && is_digit(token[x + 1])) return true;
    return false;
}

/// Where the beginning of a name ends: after its last extent, or after its fourth token when it has none.
std::size_t split_point(std::string_view name) {
    std::size_t split = std::string_view::npos;
    std::size_t fourth = std::string_view::npos;
    std::size_t start = 0;
    for (int token = 1; start <= name.size(); ++token) {
        const auto end = std::min(name.find('_', start), name.size());
        if (is_extent(name.substr(start, end - start))) split = end;
        if (token == 4) fourth = end;
        start = end + 1;
    }
    if (split == std::string_view::npos) split = fourth;
    return std::min(split, name.size());
}

} // namespace

std::string write_listing(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    std::map<std::string, std::vector<std::string>> endings_of;
    for (const std::string& name : names) {
        const auto split = split_point(name);
        endings_of[name.substr(0, split)].push_back(name.substr(split));
    }
    // Sets are numbered in the order in which the sorted beginnings first use them.
    std::map<std::vector<std::string>, std::size_t> number_of;
    std::string sets;
    std::string lines;
    for (const auto& [beginning, endings] : endings_of) {
        const auto [entry, is_new] = number_of.try_emplace(endings, number_of.size() + 1);
        if (is_new) {
            sets += fmt::format("endings {}\n", entry->second);
            for (const std::string& ending : endings) sets += fmt::format("  {}\n", ending);
        }
        lines += fmt::format("{} {}\n", beginning, entry->second);
    }
    return sets + "names\n" + lines;
}

std::vector<std::string> parse_listing(std::string_view text, const std::string& file) {
    std::vector<std::vector<std::string_view>> sets;
    std::vector<std::string> names;
    bool in_names = false;
    std::size_t number = 0;
    const auto fail = [&](std::string_view what) {
        throw InputError(fmt::format("{}, line {}: {}", file, number, what));
    };
    while (!text.empty()) {
        ++number;
        const auto end = std::min(text.find('\n'), text.size());
        const auto line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line == "names") {
            in_names = true;
        } else if (in_names) {
            const auto space = line.rfind(' ');
            std::size_t set = 0;
            if (space == std::string_view::npos ||
                std::from_chars(line.data() + space + 1, line.data() + line.size(), set).ec != std::errc{} ||
                set == 0 || set > sets.size())
                fail("expected the beginning of a name and the number of a set of endings");
            for (const auto ending : sets[set - 1])
                names.push_back(std::string(line.substr(0, space)) += ending);
        } else if (line.starts_with("endings ")) {
            sets.emplace_back();
        } else if (line.starts_with("  ") && !sets.empty()) {
            sets.back().push_back(line.substr(2));
        } else {
            fail("expected \"endings N\", an indented ending or \"names\"");
        }
    }
    if (!in_names) fail("the file has no names");
    std::sort(names.begin(), names.end());
    return names;
}

} // namespace fmha::parity
