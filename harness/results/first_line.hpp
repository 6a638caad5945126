#pragma once

#include <string>
#include <string_view>

namespace fmha::harness {

/// The sentence of a message, without the explanation on the lines behind it.
inline std::string first_line(std::string_view message) {
    return std::string(message.substr(0, message.find('\n')));
}

} // namespace fmha::harness
