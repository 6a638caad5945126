#include "harness/cli/comma_parts.hpp"

#include <algorithm>

namespace fmha::cli {

std::vector<std::string> comma_parts(std::string_view text) {
    std::vector<std::string> parts;
    for (auto comma = text.find(','); comma != std::string_view::npos; comma = text.find(',')) {
        parts.emplace_back(text.substr(0, comma));
        text.remove_prefix(comma + 1);
    }
    parts.emplace_back(text);
    return parts;
}

std::string why_no_list(const std::string& text) {
    const bool lacks_one = std::ranges::any_of(comma_parts(text), &std::string::empty);
    return lacks_one ? "\"" + text + "\" has no value on one side of a comma" : "";
}

} // namespace fmha::cli
