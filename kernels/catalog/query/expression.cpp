#include "kernels/catalog/query/expression.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <cctype>

namespace fmha::catalog {
namespace {

/// Index just after the text that starts at `at` and ends with `terminator`; `npos` when it never ends.
std::size_t skip_past(std::string_view text, std::size_t at, std::string_view terminator) {
    const auto end = text.find(terminator, at);
    return end == std::string_view::npos ? end : end + terminator.size();
}

/// True when the last word of `text` is the keyword `in`.
bool ends_with_in(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
    if (text.size() < 2) return false;
    const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
    if (lower(text[text.size() - 2]) != 'i' || lower(text.back()) != 'n') return false;
    return text.size() == 2 || (std::isalnum(static_cast<unsigned char>(text[text.size() - 3])) == 0 &&
                                text[text.size() - 3] != '_' && text[text.size() - 3] != '.');
}

/// SQL reads "mode" as the column of that name; upstream's expressions mean the text.
std::string as_sql_text(std::string_view content) {
    std::string text = "'";
    for (const char c : content) text += c == '\'' ? std::string("''") : std::string(1, c);
    return text + "'";
}

} // namespace

std::string prepare_expression(std::string_view text) {
    const auto fail = [](std::size_t at, std::string_view what) {
        throw InputError(fmt::format("filter expression, character {}: {}", at + 1, what));
    };
    std::string result;
    std::string open; // the closers that are still expected, innermost last
    std::size_t at = 0;
    while (at < text.size()) {
        const char c = text[at];
        std::size_t next = at + 1;
        std::string_view piece = text.substr(at, 1);
        if (c == '\'' || c == '"' || c == '`') {
            next = skip_past(text, at + 1, text.substr(at, 1));
            if (next == std::string_view::npos) fail(at, "this quote is never closed");
            piece = text.substr(at, next - at);
            if (c == '"') {
                result += as_sql_text(piece.substr(1, piece.size() - 2));
                piece = {};
            }
        } else if (text.substr(at).starts_with("--")) {
            next = skip_past(text, at, "\n");
            if (next == std::string_view::npos) next = text.size();
            piece = " ";
        } else if (text.substr(at).starts_with("/*")) {
            next = skip_past(text, at + 2, "*/");
            if (next == std::string_view::npos) fail(at, "this comment is never closed");
            piece = " ";
        } else if (c == '(') {
            open += ')';
        } else if (c == '[' && ends_with_in(result)) {
            open += ']';
            piece = "(";
        } else if (c == ')' || (c == ']' && !open.empty() && open.back() == ']')) {
            if (open.empty() || open.back() != c) fail(at, fmt::format("'{}' closes nothing", c));
            open.pop_back();
            piece = ")";
        } else if (c == ';') {
            fail(at, "';' is not allowed: it is one expression, not a statement");
        } else if (c == '\0') {
            fail(at, "a null byte is not allowed");
        }
        result += piece;
        at = next;
    }
    if (!open.empty()) fail(text.size(), fmt::format("'{}' is missing", open.back()));
    if (result.find_first_not_of(" \t\r\n") == std::string::npos) fail(0, "it is empty");
    return result;
}

} // namespace fmha::catalog
