#pragma once

#include "dispatcher/types/json.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

/// Booleans of files (dispatcher-api 5.1): JSON's own, and the words that upstream's files have for them. Below the parsers there are no words.
namespace fmha {

/// What `file_boolean` takes, for messages.
inline constexpr std::string_view file_boolean_takes =
    R"(true or false, or one of "t", "yes", "1", "f", "no", "0")";

/// Nothing for a value that is no boolean.
inline std::optional<bool> file_boolean(const Json& value) {
    if (value.is_boolean()) return value.get<bool>();
    if (!value.is_string()) return std::nullopt;
    constexpr std::array<std::pair<std::string_view, bool>, 6> words{
        {{"t", true}, {"yes", true}, {"1", true}, {"f", false}, {"no", false}, {"0", false}}};
    for (const auto& [word, meaning] : words)
        if (value.text() == word) return meaning;
    return std::nullopt;
}

} // namespace fmha
