#pragma once

#include "kernels/catalog/query/tokens.hpp"

namespace fmha::catalog {

/// The tokens of a filter expression, read from the left with one token in advance. Keywords are read in any case, as SQL has them.
class TokenReader {
  public:
    /// Throws ExpressionError, as tokens_of does.
    explicit TokenReader(std::string_view expression) : tokens_(tokens_of(expression)) {}

    const Token& now() const { return tokens_[next_]; }
    const Token& after() const; ///< now() at the end
    /// now(), and goes on to the next one; not at the end.
    const Token& take() { return tokens_[next_++]; }

    static bool is_keyword(const Token& token, std::string_view keyword);
    static bool is_sign(const Token& token, std::string_view sign);

    /// Whether it is now(); if so, it is taken.
    bool take_keyword(std::string_view keyword);
    bool take_sign(std::string_view sign);

    /// Throws ExpressionError where the sign is missing.
    void expect_sign(std::string_view sign);
    /// Throws ExpressionError for now(); `missing` says what should stand there, if that is known.
    [[noreturn]] void unexpected(std::string_view missing) const;

  private:
    std::vector<Token> tokens_;
    std::size_t next_ = 0;
};

} // namespace fmha::catalog
