#pragma once

#include <fmt/chrono.h>

#include <chrono>
#include <string>

namespace fmha::cli {

/// The date in UTC, "2026-05-17".
inline std::string today() {
    return fmt::format("{:%Y-%m-%d}",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

} // namespace fmha::cli
