#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

/// Finds words and numbers in texts that programs print. std::regex would do it in fewer lines and cost every source that uses
/// it seconds of compile time.
namespace fmha::generator {

/// The text behind the first `prefix`, up to the first character of `ends`; nullopt without the prefix.
inline std::optional<std::string_view> behind(std::string_view text, std::string_view prefix,
                                              std::string_view ends) {
    const auto found = text.find(prefix);
    if (found == std::string_view::npos) return std::nullopt;
    const auto begin = found + prefix.size();
    return text.substr(begin, text.find_first_of(ends, begin) - begin);
}

/// The number at the beginning of a text; nullopt for a text that begins with something else.
inline std::optional<std::int64_t> leading_number(std::string_view text) {
    std::int64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc() || text.front() == '-') return std::nullopt;
    return number;
}

/// The number just behind the first `prefix`.
inline std::optional<std::int64_t> number_behind(std::string_view text, std::string_view prefix) {
    const auto rest = behind(text, prefix, {});
    return rest ? leading_number(*rest) : std::nullopt;
}

/// The number just before the first `suffix`.
inline std::optional<std::int64_t> number_before(std::string_view text, std::string_view suffix) {
    const auto end = text.find(suffix);
    if (end == std::string_view::npos) return std::nullopt;
    const auto last_other = text.substr(0, end).find_last_not_of("0123456789");
    return leading_number(text.substr(last_other + 1, end - (last_other + 1)));
}

/// A whole text that is a number as machine code spells it, "12", "-1" or "0x1f", in 32 bits (−1 is all ones); nullopt for any other.
inline std::optional<std::uint32_t> machine_number(std::string_view text) {
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    const bool hexadecimal = text.starts_with("0x");
    if (hexadecimal) text.remove_prefix(2);
    std::uint32_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
    return negative ? 0U - value : value;
}

} // namespace fmha::generator
