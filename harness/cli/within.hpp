#pragma once

#include "dispatcher/types/error.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string_view>

namespace fmha::cli {

/// Throws InputError when the value of `option`, if it was given, is below `least` or above `most`.
inline void require_within(std::string_view option, std::optional<std::int64_t> value, std::int64_t least = 0,
                           std::int64_t most = 1'000'000) {
    if (value && (*value < least || *value > most))
        throw InputError(fmt::format("{} is {}; allowed: {} to {}", option, *value, least, most));
}

} // namespace fmha::cli
