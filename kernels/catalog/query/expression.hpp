#pragma once

#include <string>
#include <string_view>

namespace fmha::catalog {

/// Checks that `text` is one expression as far as its punctuation goes (quotes and parentheses close, nothing
/// closes what it has not opened, no semicolon), so that it can stand between parentheses, and turns
/// what upstream's expressions have and SQL has not into SQL: `in [a, b]` becomes `in (a, b)`, "text" 'text'.
/// Throws InputError that says what is wrong and where.
std::string prepare_expression(std::string_view text);

} // namespace fmha::catalog
