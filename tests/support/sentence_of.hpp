#pragma once

#include <string>
#include <utility>

namespace fmha::test {

/// What the `Error` that `action` throws says; "accepted" where it throws nothing.
template <class Error, class Action>
std::string sentence_of(Action&& action) {
    try {
        std::forward<Action>(action)();
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

} // namespace fmha::test
