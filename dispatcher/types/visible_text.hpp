#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fmha {

/// What a text may have beside printable characters.
enum class Layout : std::uint8_t {
    lines, ///< ends of lines and tabs
    none,  ///< a name, which must not pretend to be a line of its own
};

/// `text` with other control characters than those of `layout` as \x1b: names and messages that come from files of strangers give
/// no orders to a terminal. Those of UTF-8 from U+0080 to U+009F are among them.
inline std::string visible(std::string_view text, Layout layout = Layout::lines) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string seen;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const unsigned next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
        const bool wide = byte == 0xC2U && next >= 0x80U && next < 0xA0U;
        const unsigned control = wide ? next : byte;
        const bool lays_out = layout == Layout::lines && (byte == '\n' || byte == '\t');
        if (!wide && (byte >= 0x20U || lays_out) && byte != 0x7FU) {
            seen += text[i];
            continue;
        }
        seen += "\\x";
        seen += digits[control >> 4U];
        seen += digits[control & 15U];
        i += wide ? 1 : 0;
    }
    return seen;
}

/// A name, or a sentence of one line, from a file of strangers.
inline std::string visible_line(std::string_view text) {
    return visible(text, Layout::none);
}

} // namespace fmha
