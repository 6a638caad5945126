#include "kernels/catalog/query/sql_functions.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fmha::catalog {
namespace {

std::string_view text_of(sqlite3_value* value) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
    return text == nullptr ? std::string_view()
                           : std::string_view(text, static_cast<std::size_t>(sqlite3_value_bytes(value)));
}

bool divisor_is_zero(sqlite3_context* context, sqlite3_value* divisor) {
    if (sqlite3_value_double(divisor) != 0.0) return false;
    sqlite3_result_error(context, "division by zero", -1);
    return true;
}

bool are_whole(sqlite3_value** values) {
    return sqlite3_value_type(values[0]) == SQLITE_INTEGER && sqlite3_value_type(values[1]) == SQLITE_INTEGER;
}

void divide(sqlite3_context* context, int, sqlite3_value** values) {
    if (divisor_is_zero(context, values[1])) return;
    sqlite3_result_double(context, sqlite3_value_double(values[0]) / sqlite3_value_double(values[1]));
}

void floor_divide(sqlite3_context* context, int, sqlite3_value** values) {
    if (divisor_is_zero(context, values[1])) return;
    const double quotient = std::floor(sqlite3_value_double(values[0]) / sqlite3_value_double(values[1]));
    if (!are_whole(values)) return sqlite3_result_double(context, quotient);
    const std::int64_t a = sqlite3_value_int64(values[0]), b = sqlite3_value_int64(values[1]);
    if (b == -1) return sqlite3_result_double(context, quotient); // the least number has no opposite
    sqlite3_result_int64(context, a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0));
}

/// Python's remainder has the sign of the divisor.
void modulo(sqlite3_context* context, int, sqlite3_value** values) {
    if (divisor_is_zero(context, values[1])) return;
    const auto adjusted = [](auto rest, auto divisor) {
        return rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor : rest;
    };
    if (!are_whole(values)) {
        const double a = sqlite3_value_double(values[0]), b = sqlite3_value_double(values[1]);
        return sqlite3_result_double(context, adjusted(std::fmod(a, b), b));
    }
    const std::int64_t a = sqlite3_value_int64(values[0]), b = sqlite3_value_int64(values[1]);
    sqlite3_result_int64(context, b == -1 ? 0 : adjusted(a % b, b));
}

/// py_element(tuple, separator, index), a negative index from the end.
void element(sqlite3_context* context, int, sqlite3_value** values) {
    const auto tuple = text_of(values[0]), separator = text_of(values[1]);
    std::vector<std::string_view> parts;
    for (std::size_t at = 0; at < tuple.size();) {
        const std::size_t end =
            separator.empty() ? at + 1 : std::min(tuple.find(separator, at), tuple.size());
        parts.push_back(tuple.substr(at, end - at));
        at = end + separator.size();
    }
    const auto count = static_cast<std::int64_t>(parts.size());
    const std::int64_t given = sqlite3_value_int64(values[2]);
    const std::int64_t index = given < 0 ? given + count : given;
    if (index < 0 || index >= count) {
        const auto message = fmt::format("element {} of {}, which has {} elements", given, tuple, count);
        return sqlite3_result_error(context, message.c_str(), -1);
    }
    const std::string_view part = parts[static_cast<std::size_t>(index)];
    std::int64_t number = 0;
    if (const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
        error != std::errc{} || end != part.data() + part.size()) {
        const auto message = fmt::format("element {} of {} is no whole number", given, tuple);
        return sqlite3_result_error(context, message.c_str(), -1);
    }
    sqlite3_result_int64(context, number);
}

void starts_with(sqlite3_context* context, int, sqlite3_value** values) {
    sqlite3_result_int(context, text_of(values[0]).starts_with(text_of(values[1])) ? 1 : 0);
}

void ends_with(sqlite3_context* context, int, sqlite3_value** values) {
    sqlite3_result_int(context, text_of(values[0]).ends_with(text_of(values[1])) ? 1 : 0);
}

/// `function` for SQLite, through whose frames, which are C, no exception may pass.
template <void (*function)(sqlite3_context*, int, sqlite3_value**)>
void without_exceptions(sqlite3_context* context, int count, sqlite3_value** values) noexcept {
    try {
        function(context, count, values);
    } catch (const std::bad_alloc&) {
        sqlite3_result_error_nomem(context);
    } catch (const std::exception& error) {
        sqlite3_result_error(context, error.what(), -1);
    }
}

} // namespace

void add_python_functions(sqlite3* db) {
    struct Function {
        const char* name;
        int arguments;
        void (*function)(sqlite3_context*, int, sqlite3_value**);
    };
    // Not SQLITE_DETERMINISTIC: SQLite would work out constant ones ahead, and an error there could not be avoided by a
    // condition before it.
    for (const Function& one : {Function{"py_divide", 2, divide},
                                {"py_floor_divide", 2, floor_divide},
                                {"py_modulo", 2, modulo},
                                {"py_element", 3, without_exceptions<element>},
                                {"py_startswith", 2, starts_with},
                                {"py_endswith", 2, ends_with}})
        sqlite3_create_function_v2(db, one.name, one.arguments, SQLITE_UTF8, nullptr, one.function, nullptr,
                                   nullptr, nullptr);
}

} // namespace fmha::catalog
