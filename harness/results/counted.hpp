#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace fmha {

/// "1 row", "2 rows": for words whose plural ends in s.
inline std::string counted(std::size_t number, std::string_view one) {
    return fmt::format("{} {}{}", number, one, number == 1 ? "" : "s");
}

} // namespace fmha
