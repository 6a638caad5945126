#include "kernels/catalog/query/expression.hpp"

#include "dispatcher/types/did_you_mean.hpp"
#include "dispatcher/types/error.hpp"
#include "kernels/catalog/query/columns.hpp"
#include "kernels/catalog/query/term.hpp"
#include "kernels/catalog/query/token_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace fmha::catalog {
namespace {

using Kind = TermKind;

constexpr int most_nesting = 60;

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

    Term disjunction() { return joined("or", "1", "0", &Parser::conjunction); }
    Term conjunction() { return joined("and", "0", "1", &Parser::negation); }

    /// CASE stops at the first operand that decides, as Python does; AND and OR of SQL need not.
    Term joined(std::string_view keyword, std::string_view decided, std::string_view otherwise,
                Term (Parser::*operand)()) {
        Term first = (this->*operand)();
        if (!is_keyword(now(), keyword)) return first;
        bool chooses = first.kind != Kind::truth || first.chooses;
        std::string sql = "(CASE";
        const auto add = [&](const Term& term) {
            const auto condition = truth_of(term);
            sql += fmt::format(" WHEN {} THEN {}",
                               decided == "1" ? condition : fmt::format("NOT {}", condition), decided);
        };
        add(first);
        while (take_keyword(keyword)) {
            const Term term = (this->*operand)();
            chooses = chooses || term.kind != Kind::truth || term.chooses;
            add(term);
        }
        Term all = make_term(fmt::format("{} ELSE {} END)", sql, otherwise), Kind::truth, first.at);
        all.chooses = chooses;
        return all;
    }

    Term negation() {
        const std::size_t at = now().at;
        bool negative = false, any = false;
        while (take_keyword("not")) negative = !negative, any = true;
        Term term = comparison();
        if (!any) return term;
        return make_term(fmt::format("({} {})", truth_of(term), negative ? "= 0" : "<> 0"), Kind::truth, at);
    }

    Term comparison() {
        Term left = bits_or();
        std::vector<std::string> links;
        const std::size_t at = left.at;
        while (auto link = one_comparison(left)) links.push_back(std::move(*link));
        if (links.empty()) return left;
        if (links.size() == 1) return make_term(std::move(links.front()), Kind::truth, at);
        return make_term(fmt::format("({})", fmt::join(links, " AND ")), Kind::truth, at);
    }

    /// One link of a chain: reads a sign and its right side, which becomes the next left side.
    std::optional<std::string> one_comparison(Term& left) {
        const auto link = [&](std::string_view sign, bool negative) {
            Term right = bits_or();
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
        const Term low = bits_or();
        if (!take_keyword("and")) unexpected("'and' of 'between' is missing");
        Term high = bits_or();
        auto sql = between(left, low, high);
        left = std::move(high);
        return sql;
    }

    Term bits_or() { return of_numbers({{{"|", "|"}}}, &Parser::bits_and); }
    Term bits_and() { return of_numbers({{{"&", "&"}}}, &Parser::sum); }

    using Signs = std::vector<std::pair<std::string_view, std::string_view>>;

    /// `a sign b sign c`, from the left; the second of a pair is an SQL operator or, behind '@', a function.
    Term of_numbers(const Signs& signs, Term (Parser::*operand)()) {
        Term left = (this->*operand)();
        while (true) {
            const auto found =
                std::ranges::find_if(signs, [&](const auto& sign) { return is_sign(now(), sign.first); });
            if (found == signs.end()) return left;
            take();
            left = value_of(std::move(left));
            const Term right = value_of((this->*operand)());
            const std::size_t at = left.at;
            if (found->first == "+" && left.kind == Kind::text) {
                need(right, Kind::text, "+ behind text");
                left = make_term(fmt::format("({} || {})", left.sql, right.sql), Kind::text, at);
                continue;
            }
            const auto who = fmt::format("'{}'", found->first);
            need(left, Kind::number, who);
            need(right, Kind::number, who);
            const bool bits = found->first == "&" || found->first == "|";
            const Kind kind = bits && left.kind == right.kind ? left.kind : Kind::number;
            left = make_term(found->second.starts_with('@')
                                 ? fmt::format("{}({}, {})", found->second.substr(1), left.sql, right.sql)
                                 : fmt::format("({} {} {})", left.sql, found->second, right.sql),
                             kind, at);
        }
    }

    Term sum() { return of_numbers({{"+", "+"}, {"-", "-"}}, &Parser::product); }
    Term product() {
        return of_numbers({{"*", "*"}, {"/", "@py_divide"}, {"//", "@py_floor_divide"}, {"%", "@py_modulo"}},
                          &Parser::factor);
    }

    Term factor() {
        const std::size_t at = now().at;
        bool negative = false, any = false;
        while (is_sign(now(), "-") || is_sign(now(), "+")) negative ^= is_sign(take(), "-"), any = true;
        Term term = primary();
        if (!any) return term;
        need(value_of(term), Kind::number, "a sign");
        if (!negative) return term;
        Term result = make_term(fmt::format("(- {})", term.sql), Kind::number, at);
        if (term.literal) result.literal = "-" + *term.literal;
        return result;
    }

    Term primary() {
        if (++nesting_ > most_nesting) fail(now().at, "nested too deeply");
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
        if (!take_sign(")")) {
            do given.push_back(value_of(disjunction()));
            while (take_sign(","));
            expect_sign(")");
        }
        if (given.size() != function.arguments.size())
            fail(at, fmt::format("{}() takes {} values, not {}", function.name, function.arguments.size(),
                                 given.size()));
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
        const Term index = sum();
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
