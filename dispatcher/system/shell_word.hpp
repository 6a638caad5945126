#pragma once

#include <string>
#include <string_view>

namespace fmha::system {

/// `text` as one word of a POSIX shell: as it is when no character of it means anything to a shell, in single
/// quotes otherwise.
std::string shell_word(std::string_view text);

} // namespace fmha::system
