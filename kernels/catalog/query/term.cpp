#include "kernels/catalog/query/term.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

namespace fmha::catalog {
namespace {

using Kind = TermKind;

constexpr std::size_t most_sql = 60'000;

bool is_number(Kind kind) {
    return kind == Kind::number || kind == Kind::truth;
}

/// (64, 128) as the catalogue spells the tuple `like`.
Term as_tuple(const Term& list, const Term& like) {
    std::string text;
    for (const Term& item : list.items) {
        if (!item.literal) fail(item.at, "a tuple is compared with a tuple of whole numbers");
        if (&item != &list.items.front()) text += like.separator;
        text += *item.literal;
    }
    return make_term(fmt::format("'{}'", text), Kind::tuple, list.at);
}

std::string order_or_equality(const Term& left, std::string_view sign, std::string_view sql,
                              const Term& given) {
    const bool equality = sql.starts_with("IS");
    const Term right = given.kind == Kind::list && left.kind == Kind::tuple ? as_tuple(given, left) : given;
    const auto both = [&](Kind a, Kind b) {
        return (left.kind == a && right.kind == b) || (left.kind == b && right.kind == a);
    };
    const bool equatable = left.kind == Kind::none || right.kind == Kind::none ||
                           both(Kind::tuple, Kind::tuple) || both(Kind::tuple, Kind::text);
    const bool alike = (is_number(left.kind) && is_number(right.kind)) || both(Kind::text, Kind::text) ||
                       (equality && equatable);
    if (!alike || left.kind == Kind::list || right.kind == Kind::list)
        fail(right.at,
             fmt::format("'{}' compares {} with {}", sign, name_of(left.kind), name_of(right.kind)));
    return fmt::format("({} {} {})", left.sql, sql, right.sql);
}

std::string identity(const Term& left, bool negative, const Term& right) {
    if (right.kind != Kind::none && right.kind != Kind::truth)
        fail(right.at, "'is' takes None, True or False; write == for a value");
    if (right.kind == Kind::truth && left.kind != Kind::truth)
        fail(left.at, fmt::format("this is {}, so it is neither True nor False; write == to compare",
                                  name_of(left.kind)));
    return order_or_equality(left, "is", negative ? "IS NOT" : "IS", right);
}

std::string in_list(const Term& left, const Term& list) {
    std::vector<std::string> items;
    for (const Term& item : list.items) {
        const bool tuple = item.kind == Kind::list && left.kind == Kind::tuple;
        const Term one = tuple ? as_tuple(item, left) : item;
        if (one.kind != left.kind && !(is_number(one.kind) && is_number(left.kind)) &&
            !(left.kind == Kind::tuple && one.kind == Kind::text))
            fail(one.at,
                 fmt::format("this is {}, and {} is looked for", name_of(one.kind), name_of(left.kind)));
        items.push_back(one.sql);
    }
    return fmt::format("({} IN ({}))", left.sql, fmt::join(items, ", "));
}

std::string membership(const Term& left, const Term& right) {
    if (left.kind == Kind::list || left.kind == Kind::none)
        fail(left.at, fmt::format("'in' looks for a value, this is {}", name_of(left.kind)));
    if (right.kind == Kind::list) return in_list(left, right);
    if (right.parenthesised)
        fail(right.at, "in Python these parentheses are no list; write [x] or (x,) for a list of one");
    if (right.kind == Kind::text) {
        need(left, Kind::text, "'in' with text on its right");
        return fmt::format("(instr({}, {}) > 0)", right.sql, left.sql);
    }
    if (right.kind != Kind::tuple)
        fail(right.at,
             fmt::format("'in' needs a list, text or a tuple on its right, this is {}", name_of(right.kind)));
    need(left, Kind::number, "'in' with a tuple on its right");
    return fmt::format("(instr('{0}' || {1} || '{0}', '{0}' || {2} || '{0}') > 0)", right.separator,
                       right.sql, left.sql);
}

} // namespace

void fail(std::size_t at, std::string why) {
    throw ExpressionError{at, std::move(why)};
}

std::string_view name_of(Kind kind) {
    static constexpr std::array<std::string_view, 6> names{"a truth value", "a number", "text",
                                                           "a tuple",       "None",     "a list"};
    return names[static_cast<std::size_t>(kind)];
}

Term make_term(std::string sql, Kind kind, std::size_t at) {
    if (sql.size() > most_sql) fail(at, "this part is too complex");
    Term term;
    term.sql = std::move(sql);
    term.kind = kind;
    term.at = at;
    return term;
}

std::string truth_of(const Term& term) {
    switch (term.kind) {
    case Kind::truth:
        return term.sql;
    case Kind::number:
        return fmt::format("({} <> 0)", term.sql);
    case Kind::text:
    case Kind::tuple:
        return fmt::format("({} <> '')", term.sql);
    case Kind::none:
        return "0";
    case Kind::list:
        break;
    }
    fail(term.at, "a list stands only at the side of a comparison");
}

Term value_of(Term term) {
    if (term.chooses)
        fail(term.at, "'and' and 'or' give one of their sides here, not true or false; compare each side by "
                      "itself");
    return term;
}

void need(const Term& term, Kind kind, std::string_view who) {
    const bool fits = kind == Kind::number ? is_number(term.kind) : term.kind == kind;
    if (!fits) fail(term.at, fmt::format("{} needs {}, this is {}", who, name_of(kind), name_of(term.kind)));
}

Term as_truth(const Term& term, bool negative, std::size_t at) {
    return make_term(fmt::format("({} {})", truth_of(term), negative ? "= 0" : "<> 0"), Kind::truth, at);
}

Term with_sign(const Term& term, bool negative, std::size_t at) {
    need(value_of(term), Kind::number, "a sign");
    if (!negative) return term;
    Term result = make_term(fmt::format("(- {})", term.sql), Kind::number, at);
    if (term.literal) result.literal = "-" + *term.literal;
    return result;
}

/// CASE stops at the first operand that decides, as Python does; AND and OR of SQL need not.
Term decided(const std::vector<Term>& terms, bool decisive) {
    std::string sql = "(CASE";
    bool chooses = false;
    for (const Term& term : terms) {
        sql += fmt::format(" WHEN {}{} THEN {:d}", decisive ? "" : "NOT ", truth_of(term), decisive);
        chooses = chooses || term.kind != Kind::truth || term.chooses;
    }
    Term all = make_term(fmt::format("{} ELSE {:d} END)", sql, !decisive), Kind::truth, terms.front().at);
    all.chooses = chooses;
    return all;
}

Term all_of(const std::vector<std::string>& links, std::size_t at) {
    return make_term(links.size() == 1 ? links.front() : fmt::format("({})", fmt::join(links, " AND ")),
                     Kind::truth, at);
}

std::span<const ArithmeticSign> arithmetic_signs() {
    static constexpr std::array<ArithmeticSign, 8> signs{{{"|", "|", 0},
                                                          {"&", "&", 1},
                                                          {"+", "+", 2},
                                                          {"-", "-", 2},
                                                          {"*", "*", 3},
                                                          {"/", "@py_divide", 3},
                                                          {"//", "@py_floor_divide", 3},
                                                          {"%", "@py_modulo", 3}}};
    return signs;
}

Term combined(const Term& given_left, const ArithmeticSign& sign, const Term& given_right) {
    const Term left = value_of(given_left), right = value_of(given_right);
    if (sign.sign == "+" && left.kind == Kind::text) {
        need(right, Kind::text, "+ behind text");
        return make_term(fmt::format("({} || {})", left.sql, right.sql), Kind::text, left.at);
    }
    const auto who = fmt::format("'{}'", sign.sign);
    need(left, Kind::number, who);
    need(right, Kind::number, who);
    const bool bits = sign.sign == "&" || sign.sign == "|";
    const Kind kind = bits && left.kind == right.kind ? left.kind : Kind::number;
    return make_term(sign.sql.starts_with('@')
                         ? fmt::format("{}({}, {})", sign.sql.substr(1), left.sql, right.sql)
                         : fmt::format("({} {} {})", left.sql, sign.sql, right.sql),
                     kind, left.at);
}

std::span<const TermFunction> term_functions() {
    static const std::vector<TermFunction> table{
        {"abs", "abs", {Kind::number}, Kind::number},
        {"len", "length", {Kind::text}, Kind::number},
        {"lower", "lower", {Kind::text}, Kind::text},
        {"max", "max", {Kind::number, Kind::number}, Kind::number},
        {"min", "min", {Kind::number, Kind::number}, Kind::number},
        {"replace", "replace", {Kind::text, Kind::text, Kind::text}, Kind::text},
        {"upper", "upper", {Kind::text}, Kind::text},
    };
    return table;
}

std::span<const TermFunction> term_methods() {
    static const std::vector<TermFunction> table{
        {"startswith", "py_startswith", {Kind::text, Kind::text}, Kind::truth},
        {"endswith", "py_endswith", {Kind::text, Kind::text}, Kind::truth},
        {"lower", "lower", {Kind::text}, Kind::text},
        {"upper", "upper", {Kind::text}, Kind::text},
    };
    return table;
}

std::string compare(const Term& given_left, std::string_view sign, bool negative, const Term& given_right) {
    const Term left = value_of(given_left), right = value_of(given_right);
    if (sign == "is") return identity(left, negative, right);
    if (sign == "like" || sign == "glob") {
        need(left, Kind::text, fmt::format("'{}'", sign));
        need(right, Kind::text, fmt::format("'{}'", sign));
        return fmt::format("({} {}{} {})", left.sql, negative ? "NOT " : "", sign, right.sql);
    }
    if (sign == "in") return fmt::format("({}{})", negative ? "NOT " : "", membership(left, right));
    const bool equal = sign == "==" || sign == "=", unequal = sign == "!=" || sign == "<>";
    return order_or_equality(left, sign, equal ? "IS" : unequal ? "IS NOT" : sign, right);
}

std::string between(const Term& value, const Term& low, const Term& high) {
    for (const Term* side : {&value, &low, &high}) need(value_of(*side), Kind::number, "'between'");
    return fmt::format("({} BETWEEN {} AND {})", value.sql, low.sql, high.sql);
}

} // namespace fmha::catalog
