#pragma once

#include "dispatcher/types/error.hpp"
#include "tests/support/sentence_of.hpp"

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

/// Inputs that are wrong, and what is answered.
namespace fmha::harness::test {

/// Views, so that the tables below are constants: as strings they take minutes to compile with sanitizers.
struct Malformed {
    std::string_view content, sentence;
};

/// A complete file with `more` spliced in behind the mandatory keys.
inline std::string file(std::string_view more) {
    return fmt::format(R"({{"about": "a", "family": "fwd", "tier": "smoke", "fill": "normal"{}{}}})",
                       more.empty() ? "" : ", ", more);
}

inline std::string complaint(const std::function<void()>& action) {
    return fmha::test::sentence_of<InputError>(action);
}

} // namespace fmha::harness::test
