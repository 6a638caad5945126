#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace fmha::fuzz {

/// A finding unless `holds`.
inline void require(bool holds, const std::string& what) {
    if (holds) return;
    std::fprintf(stderr, "finding: %s\n", what.c_str());
    std::abort();
}

} // namespace fmha::fuzz
