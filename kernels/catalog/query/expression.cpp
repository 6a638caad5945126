#include "kernels/catalog/query/expression.hpp"

#include "dispatcher/types/did_you_mean.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/catalog/query/columns.hpp"
#include "kernels/catalog/query/term.hpp"
#include "kernels/catalog/query/token_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace fmha::catalog {
namespace {

using Kind = TermKind;

/// Brackets, calls and lists inside each other. A level takes 2 to 3 KiB of the stack, which may have no more than 128 KiB.
constexpr int most_nesting = 32;

class Parser : private TokenReader {
  public:
    using TokenReader::TokenReader;

    std::string run() {
        if (now().kind == Token::Kind::end) fail(0, "it is empty");
        if (is_keyword(now(), "def") || is_keyword(now(), "import") || is_keyword(now(), "return"))
            fail(now().at, "statements are not allowed; give the expression that filter_config returns");
        const Term whole = disjunction();
        if (now().kind != Token::Kind::end) unexpected("");
        return truth_of(whole);
    }

  private:
    // The grammar, loosest first.

    Term disjunction() { return joined("or", true, &Parser::conjunction); }
    Term conjunction() { return joined("and", false, &Parser::negation); }

    Term joined(std::string_view keyword, bool decisive, Term (Parser::*operand)()) {
        std::vector<Term> terms;
        do terms.push_back((this->*operand)());
        while (take_keyword(keyword));
        return terms.size() == 1 ? std::move(terms.front()) : decided(terms, decisive);
    }

    Term negation() {
        const std::size_t at = now().at;
        bool negative = false, any = false;
        while (take_keyword("not")) negative = !negative, any = true;
        Term term = comparison();
        return any ? as_truth(term, negative, at) : std::move(term);
    }

    Term comparison() {
        Term left = arithmetic();
        std::vector<std::string> links;
        const std::size_t at = left.at;
        while (auto link = one_comparison(left)) links.push_back(std::move(*link));
        return links.empty() ? std::move(left) : all_of(links, at);
    }

    /// One link of a chain: reads a sign and its right side, which becomes the next left side.
    std::optional<std::string> one_comparison(Term& left) {
        const auto link = [&](std::string_view sign, bool negative) {
            Term right = arithmetic();
            auto sql = compare(left, sign, negative, right);
            left = std::move(right);
            return sql;
        };
        for (const std::string_view sign : {"==", "=", "!=", "<>", "<=", ">=", "<", ">"})
            if (take_sign(sign)) return link(sign, false);
        if (take_keyword("is")) return link("is", take_keyword("not"));
        const bool negative = is_keyword(now(), "not");
        const Token& word = negative ? after() : now();
        for (const std::string_view sign : {"in", "like", "glob"})
            if (is_keyword(word, sign)) {
                take();
                if (negative) take();
                return link(sign, negative);
            }
        if (!negative && take_keyword("between")) return range(left);
        return std::nullopt;
    }

    std::string range(Term& left) {
        const Term low = arithmetic();
        if (!take_keyword("and")) unexpected("'and' of 'between' is missing");
        Term high = arithmetic();
        auto sql = between(left, low, high);
        left = std::move(high);
        return sql;
    }

    /// Values between the signs of arithmetic, of which tighter ones take theirs first, and the left one of equals.
    Term arithmetic() {
        std::vector<Term> values;
        std::vector<const ArithmeticSign*> signs;
        const auto combine_last = [&] {
            const Term right = std::move(values.back());
            values.pop_back();
            values.back() = combined(values.back(), *signs.back(), right);
            signs.pop_back();
        };
        values.push_back(factor());
        while (const ArithmeticSign* sign = take_arithmetic_sign()) {
            while (!signs.empty() && signs.back()->tightness >= sign->tightness) combine_last();
            signs.push_back(sign);
            values.push_back(factor());
        }
        while (!signs.empty()) combine_last();
        return std::move(values.front());
    }

    const ArithmeticSign* take_arithmetic_sign() {
        const auto signs = arithmetic_signs();
        const auto found = std::ranges::find_if(
            signs, [&](const ArithmeticSign& sign) { return is_sign(now(), sign.sign); });
        if (found == signs.end()) return nullptr;
        take();
        return &*found;
    }

    Term factor() {
        const std::size_t at = now().at;
        bool negative = false, any = false;
        while (is_sign(now(), "-") || is_sign(now(), "+")) negative ^= is_sign(take(), "-"), any = true;
        Term term = primary();
        return any ? with_sign(term, negative, at) : std::move(term);
    }

    Term primary() {
        if (nesting_++ > most_nesting)
            fail(now().at, fmt::format("nested more than {} levels deep", most_nesting));
        Term term = atom();
        while (true) {
            if (is_sign(now(), "[")) {
                term = element(term);
            } else if (take_sign(".")) {
                term = method(term);
            } else {
                break;
            }
        }
        --nesting_;
        return term;
    }

    Term atom() {
        const Token token = now();
        if (token.kind == Token::Kind::number) {
            take();
            Term term = make_term(token.spelling, Kind::number, token.at);
            if (token.spelling.find_first_not_of("0123456789") == std::string::npos)
                term.literal = token.spelling;
            return term;
        }
        if (token.kind == Token::Kind::text) {
            take();
            return make_term(quoted(token.spelling), Kind::text, token.at);
        }
        if (take_sign("(")) return parenthesised(token.at);
        if (take_sign("[")) return list(token.at, "]");
        if (take_sign("{")) return list(token.at, "}");
        if (token.kind != Token::Kind::word) unexpected("a value is missing");
        if (take_keyword("true")) return make_term("1", Kind::truth, token.at);
        if (take_keyword("false")) return make_term("0", Kind::truth, token.at);
        if (take_keyword("none") || take_keyword("null")) return make_term("NULL", Kind::none, token.at);
        if (is_sign(after(), "(")) return call();
        for (const std::string_view statement : {"select", "with", "where"})
            if (is_keyword(token, statement))
                fail(token.at, "a statement of SQL is not allowed; give the condition behind its WHERE");
        if (token.spelling != "c") return column("", token.at);
        take();
        if (!take_sign(".") || now().kind != Token::Kind::word)
            unexpected("c stands before a column: c.name");
        return column("c.", token.at);
    }

    static std::string quoted(std::string_view content) {
        std::string text = "'";
        for (const char c : content) text += c == '\'' ? std::string("''") : std::string(1, c);
        return text + "'";
    }

    Term parenthesised(std::size_t at) {
        if (take_sign(")")) return list_of({}, at);
        Term first = disjunction();
        if (!is_sign(now(), ",")) {
            expect_sign(")");
            first.parenthesised = true;
            first.at = at;
            return first;
        }
        return rest_of_list(std::move(first), at, ")");
    }

    Term list(std::size_t at, std::string_view closer) {
        if (take_sign(closer)) return list_of({}, at);
        return rest_of_list(disjunction(), at, closer);
    }

    Term rest_of_list(Term first, std::size_t at, std::string_view closer) {
        std::vector<Term> items{value_of(std::move(first))};
        while (take_sign(",") && !is_sign(now(), closer)) items.push_back(value_of(disjunction()));
        expect_sign(closer);
        return list_of(std::move(items), at);
    }

    Term list_of(std::vector<Term> items, std::size_t at) const {
        Term term = make_term("", Kind::list, at);
        term.items = std::move(items);
        return term;
    }

    Term call() {
        const Token name = now();
        const auto found = std::ranges::find(term_functions(), name.spelling, &TermFunction::name);
        if (found == term_functions().end()) {
            std::vector<std::string_view> names;
            for (const TermFunction& function : term_functions()) names.push_back(function.name);
            fail(name.at, fmt::format("the function {}() is not allowed; there are: {}", name.spelling,
                                      fmt::join(names, ", ")));
        }
        take();
        take(); // the parenthesis
        return apply(*found, {}, name.at);
    }

    /// The arguments behind `given`, up to the closing parenthesis, and the call.
    Term apply(const TermFunction& function, std::vector<Term> given, std::size_t at) {
        const std::size_t before_the_dot = given.size();
        if (!take_sign(")")) {
            do given.push_back(value_of(disjunction()));
            while (take_sign(","));
            expect_sign(")");
        }
        if (given.size() != function.arguments.size()) {
            const std::size_t takes = function.arguments.size() - before_the_dot;
            fail(at, fmt::format("{}() takes {} {}, not {}", function.name, takes,
                                 takes == 1 ? "value" : "values", given.size() - before_the_dot));
        }
        std::vector<std::string> arguments;
        for (std::size_t i = 0; i < given.size(); ++i) {
            need(given[i], function.arguments[i], fmt::format("{}()", function.name));
            arguments.push_back(given[i].sql);
        }
        return make_term(fmt::format("{}({})", function.sql, fmt::join(arguments, ", ")), function.result,
                         at);
    }

    /// A column by its name, as SQL has it, or behind `c.`.
    Term column(std::string_view before, std::size_t at) {
        const std::string name = take().spelling;
        if (name == "name") return make_term("c.name", Kind::text, at);
        const auto all = columns();
        const auto found = std::ranges::find(all, name, &Column::name);
        if (found == all.end()) {
            std::vector<std::string_view> names;
            for (const Column& one : all) names.push_back(one.name);
            std::string hint = did_you_mean(name, names);
            fail(at, fmt::format("no such column: {}{}{}{}", before, name,
                                 before.empty() ? " (a text stands in quotes)" : "",
                                 hint.empty() ? fmt::format("; there are: {}, name", fmt::join(names, ", "))
                                              : hint));
        }
        std::string scratch;
        const Cell sample = found->read(KernelConfig{}, scratch);
        Kind kind = std::holds_alternative<bool>(sample)           ? Kind::truth
                    : std::holds_alternative<std::int64_t>(sample) ? Kind::number
                                                                   : Kind::text;
        if (found->tuple_separator) kind = Kind::tuple;
        Term term = make_term(fmt::format("c.\"{}\"", name), kind, at);
        term.separator = found->tuple_separator.value_or("");
        return term;
    }

    Term element(const Term& term) {
        const std::size_t at = now().at;
        if (term.kind != Kind::tuple)
            fail(at, fmt::format("only tuples have elements ({}), this is {}", tuples(), name_of(term.kind)));
        expect_sign("[");
        const Term index = arithmetic();
        if (!index.literal) fail(index.at, "an element is chosen by a whole number, as in c.tile[0]");
        expect_sign("]");
        return make_term(fmt::format("py_element({}, '{}', {})", term.sql, term.separator, *index.literal),
                         Kind::number, at);
    }

    static std::string tuples() {
        std::vector<std::string> names;
        for (const Column& column : columns())
            if (column.tuple_separator) names.push_back("c." + column.name);
        return fmt::format("{}", fmt::join(names, ", "));
    }

    Term method(const Term& of) {
        const Token name = take();
        const auto methods = term_methods();
        const auto found = std::ranges::find(methods, name.spelling, &TermFunction::name);
        if (found == methods.end() || !take_sign("("))
            fail(name.at,
                 fmt::format("'.{}' is not known; text has startswith(), endswith(), lower() and upper()",
                             name.spelling));
        return apply(*found, {value_of(of)}, name.at);
    }

    int nesting_ = 0;
};

} // namespace

std::string sql_of(std::string_view expression) {
    try {
        return Parser(expression).run();
    } catch (const ExpressionError& error) {
        throw InputError(
            fmt::format("{}: character {}: {}", naming_expression(expression), error.at + 1, error.why));
    }
}

std::string naming_expression(std::string_view expression) {
    constexpr std::size_t most = 100;
    constexpr std::string_view blanks = " \t\r\n\v\f";
    std::string line;
    for (const char c : expression) {
        const bool blank = blanks.find(c) != std::string_view::npos;
        if (!blank || !line.ends_with(' ')) line += blank ? ' ' : c;
    }
    if (line.size() > most) {
        std::size_t end = most;
        while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U)
            --end; // inside a character
        line = line.substr(0, end) + "…";
    }
    return fmt::format("filter expression \"{}\"", line);
}

} // namespace fmha::catalog
