#include "harness/cases/strict_json.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

namespace fmha::harness {

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
                throw InputError(fmt::format("{}: key \"{}\" appears twice in one object", where, key));
        }
        return true;
    };
    try {
        return Json::parse(text, watch);
    } catch (const Json::exception& error) {
        // what() is "[json.exception.parse_error.101] parse error at line 3, column 5: …".
        const std::string what = error.what();
        const auto bracket = what.find("] ");
        throw InputError(fmt::format("{}: not valid JSON: {}", where,
                                     bracket == std::string::npos ? what : what.substr(bracket + 2)));
    }
}

std::string read_text_file(const std::string& path) {
    std::error_code unused;
    if (!std::filesystem::exists(path, unused)) throw InputError(fmt::format("{}: no such file", path));
    if (!std::filesystem::is_regular_file(path, unused))
        throw InputError(fmt::format("{}: expected a file, this is not a regular file", path));
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw InputError(fmt::format("{}: cannot be opened for reading", path));
    return {std::istreambuf_iterator<char>(stream), {}};
}

} // namespace fmha::harness
