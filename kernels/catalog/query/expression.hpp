#pragma once

#include <string>
#include <string_view>

namespace fmha::catalog {

/// A filter expression over the columns of `c` as one SQL expression between parentheses, with Python's meaning. Comparisons chain
/// (`64 <= c.tile_m0 < 256`). `and`, `or` and `not` look at truth and stop early. `in` looks into lists, texts and tuples, and
/// `c.tile[0]` is an element. `/` divides exactly, and None equals nothing but itself. From SQL come columns without `c.`, `=` and
/// `<>`, `like`, `glob` and `between`, which Python has not. Throws InputError, with the place, for everything else: unknown columns
/// and functions, statements, a comparison of text with a number.
std::string sql_of(std::string_view expression);

/// How messages begin: `filter expression "…"`, on one line and no longer than a hundred bytes of it.
std::string naming_expression(std::string_view expression);

} // namespace fmha::catalog
