#include "dispatcher/types/fixed_string.hpp"

#include <stdexcept>
#include <string>

namespace fmha {

void throw_name_too_long(std::string_view name) {
    throw std::length_error("name is too long: " + std::string(name));
}

} // namespace fmha
