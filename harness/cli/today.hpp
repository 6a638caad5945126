#pragma once

#include <fmt/chrono.h>

#include <ctime>
#include <string>

namespace fmha::cli {

/// The date in UTC, "2026-05-17".
inline std::string today() {
    return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
}

/// "2026-01-02T03:04:05Z"
inline std::string now_utc() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

} // namespace fmha::cli
