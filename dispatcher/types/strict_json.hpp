#pragma once

#include "dispatcher/types/json.hpp"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace fmha {

/// Parses JSON text, keys in file order. A syntax error, a number that does not fit or a repeated key is an InputError
/// that starts with `where`.
Json parse_strict_json(std::string_view text, const std::string& where);

/// Throws InputError that starts with `where` for a value that is no object, and for a key outside `known`.
void allow_keys(const Json& object, const std::string& where, std::initializer_list<std::string_view> known);

/// The value of a key that must be there. InputError that names `where` and the key for one that is missing or of another type.
template <class T>
T value_at(const Json& object, const std::string& where, std::string_view key) {
    try {
        return object.at(key).get<T>();
    } catch (const JsonError& error) {
        throw InputError(where + ", \"" + std::string(key) + "\": " + error.what());
    }
}

/// A value of a file that holds several, and where it stands: "file:3" or "file[2]".
struct PlacedJson {
    std::string place;
    Json value;
};

/// The values of a text that is one value, an array of them, or one value a line. Throws as `parse_strict_json`, and
/// for a text without any.
std::vector<PlacedJson> json_values(std::string_view text, const std::string& source);

} // namespace fmha
