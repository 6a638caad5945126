#include "dispatcher/types/strict_json.hpp"

#include "dispatcher/types/error.hpp"

#include <algorithm>
#include <set>

namespace fmha {

nlohmann::ordered_json parse_strict_json(std::string_view text, const std::string& where) {
    using Json = nlohmann::ordered_json;
    // nlohmann keeps the last of two equal keys without a word, hence the callback.
    std::vector<std::set<std::string>> open_objects;
    const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
        if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
        if (event == Json::parse_event_t::object_end) open_objects.pop_back();
        if (event == Json::parse_event_t::key) {
            const auto key = parsed.get<std::string>();
            if (!open_objects.back().insert(key).second)
                throw InputError(where + ": key \"" + key + "\" appears twice in one object");
        }
        return true;
    };
    try {
        return Json::parse(text, watch);
    } catch (const Json::exception& error) {
        // what() is "[json.exception.parse_error.101] parse error at line 3, column 5: …".
        const std::string what = error.what();
        const auto bracket = what.find("] ");
        throw InputError(
            where + ": not valid JSON: " + (bracket == std::string::npos ? what : what.substr(bracket + 2)));
    }
}

std::vector<PlacedJson> json_values(std::string_view text, const std::string& source) {
    const auto blank = [](std::string_view part) {
        return part.find_first_not_of(" \t\r\n") == std::string_view::npos;
    };
    std::vector<PlacedJson> values;
    const auto first_end = std::min(text.find('\n'), text.size());
    // One value a line when the first line is a value and not everything; otherwise a mistake is reported where it stands.
    const bool lines =
        nlohmann::ordered_json::accept(text.substr(0, first_end)) && !blank(text.substr(first_end));
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
