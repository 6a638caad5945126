#pragma once

#include <string>
#include <string_view>

namespace fmha::arch {

/// Checks the JSON text `document` against the schema `schema`. Throws InputError with `file`, the JSON path of the first violation,
/// the value there and the schema's demand; further violations follow, up to eight.
void check_schema(const std::string& file, std::string_view document, std::string_view schema);

} // namespace fmha::arch
