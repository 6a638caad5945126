#pragma once

#include <string>
#include <string_view>

namespace fmha::reports {

/// `text` for use in XML and HTML, in elements and in quoted attributes. Characters that XML 1.0 cannot hold
/// become '?'.
inline std::string escaped(std::string_view text) {
    std::string safe;
    safe.reserve(text.size());
    for (const char c : text) {
        switch (c) {
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
        default:
            safe += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
        }
    }
    return safe;
}

} // namespace fmha::reports
