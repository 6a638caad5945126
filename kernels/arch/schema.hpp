#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace fmha::arch {

/// Checks `document` against `schema`. Throws InputError with `file`, the JSON path of the first violation,
/// the value that stands there and what the schema asks for; further violations follow, up to eight.
void check_schema(const std::string& file, const nlohmann::json& document, const nlohmann::json& schema);

} // namespace fmha::arch
