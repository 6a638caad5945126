#include "harness/cli/paint.hpp"

#include "reports/report.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <vector>

namespace fmha::cli {
namespace {

constexpr std::string_view red = "31;1", green = "32;1", bold = "1", plain = "0";

/// The beginnings of lines that are painted, and their colours.
std::vector<std::pair<std::string, std::string_view>> painted_words() {
    std::vector<std::pair<std::string, std::string_view>> words{
        {"RED", red}, {"GREEN", green}, {"SMALLER", bold}};
    for (const auto& [outcome, name] : EnumTable<harness::Outcome>::names)
        if (!harness::is_green(outcome)) words.emplace_back(reports::heading(outcome), red);
    return words;
}

std::string painted_line(std::string_view line) {
    static const auto words = painted_words();
    for (const auto& [word, colour] : words)
        if (line.starts_with(word) &&
            (line.size() == word.size() || line[word.size()] == ' ' || line[word.size()] == ':'))
            return fmt::format("\x1b[{}m{}\x1b[{}m{}", colour, word, plain, line.substr(word.size()));
    return std::string(line);
}

} // namespace

std::string painted(std::string_view text, bool on) {
    if (!on) return std::string(text);
    std::string result;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        result += painted_line(text.substr(begin, end - begin));
        if (end < text.size()) result += '\n';
        begin = end + 1;
    }
    return result;
}

bool takes_orders(bool terminal, const char* term) {
    return terminal && (term == nullptr || std::string_view(term) != "dumb");
}

bool wants_colours(bool orders, const char* no_color) {
    return orders && (no_color == nullptr || *no_color == '\0');
}

} // namespace fmha::cli
