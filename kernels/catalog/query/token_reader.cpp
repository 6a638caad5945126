#include "kernels/catalog/query/token_reader.hpp"

#include "kernels/catalog/query/term.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace fmha::catalog {

const Token& TokenReader::after() const {
    return tokens_[std::min(next_ + 1, tokens_.size() - 1)];
}

bool TokenReader::is_keyword(const Token& token, std::string_view keyword) {
    return token.kind == Token::Kind::word &&
           std::ranges::equal(token.spelling, keyword, {},
                              [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
}
bool TokenReader::is_sign(const Token& token, std::string_view sign) {
    return token.kind == Token::Kind::sign && token.spelling == sign;
}

bool TokenReader::take_keyword(std::string_view keyword) {
    const bool here = is_keyword(now(), keyword);
    if (here) ++next_;
    return here;
}
bool TokenReader::take_sign(std::string_view sign) {
    const bool here = is_sign(now(), sign);
    if (here) ++next_;
    return here;
}

void TokenReader::expect_sign(std::string_view sign) {
    if (!take_sign(sign)) unexpected(fmt::format("'{}' is missing", sign));
}

void TokenReader::unexpected(std::string_view missing) const {
    const Token& token = now();
    if (token.kind == Token::Kind::end)
        fail(token.at, std::string(missing.empty() ? "a value is missing" : missing));
    if (token.kind == Token::Kind::sign &&
        (token.spelling == ")" || token.spelling == "]" || token.spelling == "}"))
        fail(token.at, fmt::format("'{}' closes nothing", token.spelling));
    fail(token.at,
         fmt::format("'{}' is not allowed here{}{}", token.spelling, missing.empty() ? "" : "; ", missing));
}

} // namespace fmha::catalog
