#pragma once

#include <string>

namespace fmha::harness {

/// The name of a case without its seed; another name as it is.
inline std::string without_seed(const std::string& name) {
    return name.substr(0, name.rfind('@'));
}

} // namespace fmha::harness
