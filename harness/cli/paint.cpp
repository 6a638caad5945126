#include "harness/cli/paint.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace fmha::cli {
namespace {

constexpr std::string_view red = "31;1", green = "32;1", bold = "1", plain = "0";

/// The first word of a line, and its colour.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> words{{{"FAILED", red},
                                                                              {"MISTRUSTED", red},
                                                                              {"CRASHED", red},
                                                                              {"TIMED OUT", red},
                                                                              {"REFUSED UNEXPECTEDLY", red},
                                                                              {"PASSED UNEXPECTEDLY", red},
                                                                              {"RED", red},
                                                                              {"GREEN", green},
                                                                              {"SMALLER", bold}}};

std::string painted_line(std::string_view line) {
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

bool wants_colours(bool terminal, const char* no_color) {
    return terminal && (no_color == nullptr || *no_color == '\0');
}

} // namespace fmha::cli
