#pragma once

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>
#include <utility>

namespace fmha::cli {

/// Throws InputError for the first of `others`, each whether it was given and its name, that was given beside `option`.
inline void refuse_beside(std::string_view option,
                          std::initializer_list<std::pair<bool, std::string_view>> others) {
    for (const auto& [given, other] : others)
        if (given) throw InputError(fmt::format("{} and {} exclude one another", option, other));
}

} // namespace fmha::cli
