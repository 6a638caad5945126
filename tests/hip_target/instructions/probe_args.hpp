#pragma once

#include <cstdint>

namespace fmha::hip_target::test {

/// One multiplication by one wave: the registers of its lanes, each lane's one after the other.
struct MultiplyArgs {
    const std::uint32_t* a = nullptr; ///< the fragment's words, and the scale of a scaled instruction
    const std::uint32_t* b = nullptr;
    float* c = nullptr; ///< read and written
};

} // namespace fmha::hip_target::test
