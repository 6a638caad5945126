#pragma once

#include "dispatcher/types/fixed_string.hpp"

#include <stdexcept>
#include <string>
#include <string_view>

namespace fmha {

template <class Name>
void throw_name_too_long(Name name) {
    throw std::length_error("name is too long: " + std::string(std::string_view(name)));
}

} // namespace fmha
