#include "dispatcher/types/strict_json.hpp"

#include "dispatcher/types/error.hpp"

#include <algorithm>

namespace fmha {

Json parse_strict_json(std::string_view text, const std::string& where) {
    try {
        return Json::parse(text);
    } catch (const JsonError& error) {
        throw InputError(where + ": " + error.what());
    }
}

void allow_keys(const Json& object, const std::string& where, std::initializer_list<std::string_view> known) {
    if (!object.is_object()) throw InputError(where + ": expected an object, got " + object.dump());
    for (const auto& [key, unused] : object.items()) {
        if (std::ranges::find(known, key) != known.end()) continue;
        std::string allowed;
        for (const std::string_view name : known) allowed.append(allowed.empty() ? "" : ", ").append(name);
        throw InputError(std::string(where).append(": unknown key \"").append(key).append("\"; allowed: ") +
                         allowed);
    }
}

std::vector<PlacedJson> json_values(std::string_view text, const std::string& source) {
    const auto blank = [](std::string_view part) {
        return part.find_first_not_of(" \t\r\n") == std::string_view::npos;
    };
    std::vector<PlacedJson> values;
    const auto first_end = std::min(text.find('\n'), text.size());
    // One value a line when the first line is not everything and is a value; otherwise a mistake is reported where it stands.
    const bool lines =
        !blank(text.substr(first_end)) && Json::try_parse(text.substr(0, first_end)).has_value();
    if (lines) {
        int number = 0;
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            const std::string_view line = text.substr(begin, end - begin);
            begin = end + 1;
            const std::string place = source + ":" + std::to_string(++number);
            if (!blank(line)) values.push_back({place, parse_strict_json(line, place)});
        }
    } else if (!blank(text)) {
        auto whole = parse_strict_json(text, source);
        if (!whole.is_array()) return {{source, std::move(whole)}};
        for (std::size_t i = 0; i < whole.size(); ++i)
            values.push_back({source + "[" + std::to_string(i) + "]", std::move(whole[i])});
    }
    if (values.empty()) throw InputError(source + ": holds no problem");
    return values;
}

} // namespace fmha
