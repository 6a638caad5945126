#include "parity/listing.hpp"

#include "dispatcher/types/error.hpp"
#include "parity/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
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

/// A, B, … Z, AA, AB, …
std::string letters(std::size_t number) {
    std::string text(1, static_cast<char>('A' + number % 26));
    return number < 26 ? text : letters(number / 26 - 1) + text;
}

} // namespace

std::string_view tile_beginning(std::string_view name) {
    return name.substr(0, split_point(name));
}

std::string write_listing(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    std::map<std::string, std::vector<std::string>> endings_of;
    for (const std::string& name : names) {
        const auto split = split_point(name);
        endings_of[name.substr(0, split)].push_back(name.substr(split));
    }
    // Sets are lettered in the order in which the sorted beginnings first use them.
    std::map<std::vector<std::string>, std::string> letter_of;
    std::string sets;
    std::string lines;
    for (const auto& [beginning, endings] : endings_of) {
        const auto [entry, is_new] = letter_of.try_emplace(endings, letters(letter_of.size()));
        if (is_new) sets += fmt::format("{} {}\n", entry->second, write_pattern(endings));
        lines += fmt::format("{} {}\n", beginning, entry->second);
    }
    return sets + "\n" + lines;
}

std::vector<std::string> parse_listing(std::string_view text, const std::string& file) {
    std::map<std::string_view, std::vector<std::string>> sets;
    std::vector<std::string> names;
    bool in_names = false;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const auto end = std::min(text.find('\n'), text.size());
        const auto line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty()) {
            in_names = true;
            continue;
        }
        const auto space = line.find(' ');
        if (space == std::string_view::npos)
            throw InputError(fmt::format("{}, line {}: expected two words", file, number));
        const auto first = line.substr(0, space);
        const auto second = line.substr(space + 1);
        if (!in_names) {
            sets[first] = expand_pattern(second);
            continue;
        }
        const auto set = sets.find(second);
        if (set == sets.end())
            throw InputError(fmt::format("{}, line {}: there is no set of endings {}", file, number, second));
        for (const std::string& ending : set->second) names.push_back(std::string(first) += ending);
    }
    if (!in_names) throw InputError(fmt::format("{}: the file has no names", file));
    std::sort(names.begin(), names.end());
    return names;
}

} // namespace fmha::parity
