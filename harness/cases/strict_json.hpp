#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace fmha::harness {

/// Parses JSON text, keys in file order. A syntax error or a repeated key is an InputError that starts with
/// `where`.
nlohmann::ordered_json parse_strict_json(std::string_view text, const std::string& where);

/// The whole file. InputError when it is missing, a directory or unreadable.
std::string read_text_file(const std::string& path);

} // namespace fmha::harness
