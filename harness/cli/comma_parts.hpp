#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fmha::cli {

/// "a,b" as "a" and "b"; an empty text is one empty part.
std::vector<std::string> comma_parts(std::string_view text);

/// Why a list in one word is refused: a part of it is empty. Empty for a list that has all its parts.
std::string why_no_list(const std::string& text);

} // namespace fmha::cli
