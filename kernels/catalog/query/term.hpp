#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::catalog {

/// A filter expression that cannot be read: character `at` is to blame.
struct ExpressionError {
    std::size_t at;
    std::string why;
};

[[noreturn]] void fail(std::size_t at, std::string why);

enum class TermKind { truth, number, text, tuple, none, list };

std::string_view name_of(TermKind kind);

/// Part of a filter expression in SQL, closed by parentheses where it needs them.
struct Term {
    std::string sql;
    TermKind kind = TermKind::number;
    std::size_t at = 0;
    bool parenthesised = false;
    /// `and` or `or` over values that are not truth values: in Python one of these values.
    bool chooses = false;
    std::string_view separator{};         ///< of a tuple
    std::vector<Term> items{};            ///< of a list
    std::optional<std::string> literal{}; ///< of a whole number, as written
};

/// Fails for SQL that grew beyond all measure: a chain reads its inner operands twice.
Term make_term(std::string sql, TermKind kind, std::size_t at);

/// SQL that is 1 or 0 as Python takes the value for true or false.
std::string truth_of(const Term& term);

/// The same term as an operand of a sign that looks at the value; fails for `and` and `or` over other than truth values.
Term value_of(Term term);

/// Fails when `term` is not of `kind`; `who` needs it.
void need(const Term& term, TermKind kind, std::string_view who);

/// `not term` for a negative one, else `not not term`: a truth value.
Term as_truth(const Term& term, bool negative, std::size_t at);

/// `-term` for a negative one, else `+term`.
Term with_sign(const Term& term, bool negative, std::size_t at);

/// `a or b or …`, for which true is decisive, or `a and b and …`, for which false is. Evaluation stops at the first that decides.
Term decided(const std::vector<Term>& terms, bool decisive);

/// All links of a chain of comparisons in SQL.
Term all_of(const std::vector<std::string>& links, std::size_t at);

/// A sign between two values; one of more tightness takes its values first.
struct ArithmeticSign {
    std::string_view sign, sql; ///< an operator of SQL or, behind '@', a function
    int tightness;
};

std::span<const ArithmeticSign> arithmetic_signs();

/// `left sign right`; + joins texts, too.
Term combined(const Term& left, const ArithmeticSign& sign, const Term& right);

/// A function or method of expressions and its form in SQL.
struct TermFunction {
    std::string_view name, sql;
    std::vector<TermKind> arguments;
    TermKind result;
};

std::span<const TermFunction> term_functions();
/// Their first argument stands before the point.
std::span<const TermFunction> term_methods();

/// One comparison in SQL. `sign` is as written (`==`, `<`, `in`, `like`, …), `negative` that of `not in` and `is not`.
std::string compare(const Term& left, std::string_view sign, bool negative, const Term& right);
std::string between(const Term& value, const Term& low, const Term& high);

} // namespace fmha::catalog
