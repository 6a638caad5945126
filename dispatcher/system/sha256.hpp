#pragma once

#include <string>
#include <string_view>

namespace fmha::system {

/// SHA-256 of a text, 64 lower-case hexadecimal digits.
std::string sha256(std::string_view text);

} // namespace fmha::system
