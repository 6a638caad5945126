#pragma once

#include "dispatcher/types/json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace fmha {

/// Parses JSON text, keys in file order. A syntax error, a number that does not fit or a repeated key is an InputError
/// that starts with `where`.
Json parse_strict_json(std::string_view text, const std::string& where);

/// A value of a file that holds several, and where it stands: "file:3" or "file[2]".
struct PlacedJson {
    std::string place;
    Json value;
};

/// The values of a text that is one value, an array of them, or one value a line. Throws as `parse_strict_json`, and
/// for a text without any.
std::vector<PlacedJson> json_values(std::string_view text, const std::string& source);

} // namespace fmha
