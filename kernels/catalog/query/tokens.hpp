#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::catalog {

struct Token {
    enum class Kind { word, number, text, sign, end };
    Kind kind = Kind::end;
    /// As written; for a text its content without quotes, for a number as SQL writes it.
    std::string spelling;
    std::size_t at = 0; ///< index of the first character in the expression
};

/// The tokens of a filter expression, an `end` last. `#` starts a comment that ends with the line. Throws
/// ExpressionError for a character that no expression has, for a quote that is never closed, and for spellings that Python and SQL read
/// differently (`--`, adjacent texts, a backslash in a text).
std::vector<Token> tokens_of(std::string_view expression);

} // namespace fmha::catalog
