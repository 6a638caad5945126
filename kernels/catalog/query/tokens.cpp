#include "kernels/catalog/query/tokens.hpp"

#include "kernels/catalog/query/term.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace fmha::catalog {
namespace {

/// Longer ones first.
constexpr std::array<std::string_view, 28> signs{"**", "//", "<=", ">=", "==", "!=", "<>", "<<", ">>", "<",
                                                 ">",  "=",  "+",  "-",  "*",  "/",  "%",  "&",  "|",  "(",
                                                 ")",  "[",  "]",  "{",  "}",  ",",  ".",  ":"};

bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

class Lexer {
  public:
    explicit Lexer(std::string_view expression) : all_(expression) {}

    std::vector<Token> run() {
        while (skip_blanks(), at_ < all_.size()) add();
        tokens_.push_back({Token::Kind::end, "the end", all_.size()});
        return std::move(tokens_);
    }

  private:
    void skip_blanks() {
        while (at_ < all_.size()) {
            if (all_[at_] == '#')
                at_ = std::min(all_.find('\n', at_), all_.size());
            else if (std::isspace(static_cast<unsigned char>(all_[at_])) != 0)
                ++at_;
            else
                return;
        }
    }

    void add() {
        const char c = all_[at_];
        const bool point_and_digit = c == '.' && at_ + 1 < all_.size() && is_digit(all_[at_ + 1]);
        if (c == '\'' || c == '"')
            add_text(c);
        else if (is_digit(c) || point_and_digit)
            add_number();
        else if (is_word(c))
            add_word();
        else
            add_sign();
    }

    void add_word() {
        const std::size_t start = at_;
        push(start, Token::Kind::word, span_while(is_word));
    }

    void add_text(char quote) {
        const std::size_t start = at_;
        if (!tokens_.empty() && tokens_.back().kind == Token::Kind::text)
            fail(start, "two texts without a sign between them: Python joins them, SQL reads a quote");
        const auto end = all_.find(quote, at_ + 1);
        if (end == std::string_view::npos) fail(start, "this quote is never closed");
        const auto content = all_.substr(start + 1, end - start - 1);
        if (content.find('\\') != std::string_view::npos)
            fail(start, "a text with a backslash is not allowed");
        if (content.find('\0') != std::string_view::npos) fail(start, "a null byte is not allowed");
        push(start, Token::Kind::text, content);
        at_ = end + 1;
    }

    void add_number() {
        const std::size_t start = at_;
        const auto spelling = span_while([](char c) { return is_word(c) || c == '.'; });
        std::string digits;
        std::ranges::copy_if(spelling, std::back_inserter(digits), [](char c) { return c != '_'; });
        const char* const last = digits.data() + digits.size();
        std::int64_t whole = 0;
        double real = 0.0;
        if (const auto read = std::from_chars(digits.data(), last, whole);
            read.ec == std::errc{} && read.ptr == last) {
            push(start, Token::Kind::number, std::to_string(whole));
        } else if (const auto as_real = std::from_chars(digits.data(), last, real);
                   as_real.ec == std::errc{} && as_real.ptr == last &&
                   !std::ranges::all_of(digits, is_digit)) {
            push(start, Token::Kind::number, fmt::format("{:.17e}", real));
        } else {
            fail(start, fmt::format("{} is not a decimal number of 64 bits", spelling));
        }
    }

    void add_sign() {
        const auto rest = all_.substr(at_);
        if (rest.starts_with("--") || rest.starts_with("/*"))
            fail(at_, fmt::format("'{}' starts a comment in SQL and none in Python; a comment starts with #",
                                  rest.substr(0, 2)));
        if (rest.starts_with(';')) fail(at_, "';' is not allowed: it is one expression, not a statement");
        if (rest.starts_with("||")) fail(at_, "'||' is not allowed: 'or' combines conditions, + joins texts");
        const auto* const found =
            std::ranges::find_if(signs, [&](std::string_view sign) { return rest.starts_with(sign); });
        if (found == signs.end()) {
            const bool printable = std::isprint(static_cast<unsigned char>(rest[0])) != 0;
            fail(at_, printable ? fmt::format("'{}' is not allowed here", rest[0])
                                : fmt::format("a byte {:#04x} is not allowed here",
                                              static_cast<unsigned char>(rest[0])));
        }
        push(at_, Token::Kind::sign, *found);
        at_ += found->size();
    }

    template <class Belongs>
    std::string_view span_while(Belongs belongs) {
        const std::size_t start = at_;
        while (at_ < all_.size() && belongs(all_[at_])) ++at_;
        return all_.substr(start, at_ - start);
    }

    void push(std::size_t at, Token::Kind kind, std::string_view spelling) {
        tokens_.push_back({kind, std::string(spelling), at});
    }

    std::string_view all_;
    std::size_t at_ = 0;
    std::vector<Token> tokens_;
};

} // namespace

std::vector<Token> tokens_of(std::string_view expression) {
    return Lexer(expression).run();
}

} // namespace fmha::catalog
