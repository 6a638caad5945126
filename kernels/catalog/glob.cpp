#include "kernels/catalog/glob.hpp"

#include <cstddef>

namespace fmha::catalog {

namespace {

/// Position of the bracket that closes the set opened at `open`, or npos; a bracket right after the opening
/// (or after its `!`) is a member.
std::size_t set_end(std::string_view pattern, std::size_t open) {
    std::size_t i = open + 1;
    if (i < pattern.size() && pattern[i] == '!') ++i;
    if (i < pattern.size() && pattern[i] == ']') ++i;
    return pattern.find(']', i);
}

bool set_has(std::string_view members, char c) {
    const bool negated = !members.empty() && members.front() == '!';
    if (negated) members.remove_prefix(1);
    bool found = false;
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (i + 2 < members.size() && members[i + 1] == '-') {
            found = found || (members[i] <= c && c <= members[i + 2]);
            i += 2;
        } else {
            found = found || members[i] == c;
        }
    }
    return found != negated;
}

/// Matches one character of text against the element at `p`; returns the position after the element, or npos.
std::size_t match_one(std::string_view pattern, std::size_t p, char c) {
    if (pattern[p] == '?') return p + 1;
    if (pattern[p] == '[')
        if (const std::size_t end = set_end(pattern, p); end != std::string_view::npos)
            return set_has(pattern.substr(p + 1, end - p - 1), c) ? end + 1 : std::string_view::npos;
    return pattern[p] == c ? p + 1 : std::string_view::npos;
}

} // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
    constexpr std::size_t none = std::string_view::npos;
    std::size_t p = 0;
    std::size_t t = 0;
    std::size_t star = none; // the last star, and the text position up to which it has eaten
    std::size_t eaten = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            eaten = t;
            continue;
        }
        const std::size_t next = p < pattern.size() ? match_one(pattern, p, text[t]) : none;
        if (next != none) {
            p = next;
            ++t;
        } else if (star != none) {
            p = star + 1;
            t = ++eaten;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

} // namespace fmha::catalog
