#pragma once

#include <string_view>

namespace fmha::catalog {

/// Whole-text, case-sensitive glob match as Python's fnmatchcase does it: `*`, `?`, `[abc]`, `[a-z]`,
/// `[!abc]`. An unclosed bracket stands for itself; there is no escape character.
bool glob_match(std::string_view pattern, std::string_view text);

} // namespace fmha::catalog
