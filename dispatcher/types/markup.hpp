#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fmha {

/// The bytes of the character at the beginning of a text that is not empty; 0 where it is no UTF-8, or one that XML 1.0 cannot hold.
inline std::size_t character_size(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text.front());
    if (lead < 0x80U) return lead >= 0x20U || lead == '\n' || lead == '\t' ? 1 : 0;
    const std::size_t size = lead < 0xC0U ? 0 : lead < 0xE0U ? 2 : lead < 0xF0U ? 3 : lead < 0xF8U ? 4 : 0;
    if (size == 0 || size > text.size()) return 0;
    std::uint32_t code = lead & (0x7FU >> size);
    for (const char c : text.substr(1, size - 1)) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte & 0xC0U) != 0x80U) return 0;
        code = (code << 6U) | (byte & 0x3FU);
    }
    constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = code >= 0xD800 && code < 0xE000, no_character = code == 0xFFFE || code == 0xFFFF;
    return code < least[size] || code > 0x10FFFF || surrogate || no_character ? 0 : size;
}

/// `text` for use in XML and HTML, in elements and in quoted attributes. Bytes of characters that XML 1.0 cannot hold, and those that are
/// no UTF-8, become '?': one of them would make the whole file unreadable.
inline std::string escaped(std::string_view text) {
    std::string safe;
    safe.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        switch (text[i]) {
        case '&':
            safe += "&amp;";
            break;
        case '<':
            safe += "&lt;";
            break;
        case '>':
            safe += "&gt;";
            break;
        case '"':
            safe += "&quot;";
            break;
        case '\'':
            safe += "&#39;";
            break;
        default: {
            const std::size_t size = character_size(text.substr(i));
            safe += size == 0 ? std::string_view("?") : text.substr(i, size);
            i += size == 0 ? 0 : size - 1;
        }
        }
    }
    return safe;
}

} // namespace fmha
