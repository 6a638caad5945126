#pragma once

#include <cstdint>

/// What the probe's kernels read and write. All pointers are the device's.
namespace fmha::hip_target::test {

/// Ways in which a device converts.
enum class Way : std::uint8_t {
    instruction, ///< the architecture's own conversion, bare
    program,     ///< kernels/programs/formats.hpp, compiled for the device
    machine,     ///< the machine's pack, which kernels store with; it has no counterpart that decodes
    quotient,    ///< the same of four times the value divided by four, by which kernels narrow weights
};
inline constexpr int ways = 4;

inline constexpr int probe_threads = 256;

struct ProbeArgs {
    const float* values = nullptr;
    std::int64_t value_count = 0, code_count = 0;
    float* decoded[ways] = {};         ///< [code_count], code → value
    std::uint32_t* encoded[ways] = {}; ///< [value_count], value → code
};

} // namespace fmha::hip_target::test
