#pragma once

#include "kernels/targets/hip/ws_launch.hpp"

#include <cstdint>

namespace fmha::hip_target::test {

/// Products of one warp group: D += A · Bᵀ with both operands in LDS, or D += A · B with A in registers. A has 64 rows, and
/// every step has a depth of 16.
struct GroupProductArgs {
    static constexpr int most_steps = 8, words_a = 4 * most_steps; ///< of a thread

    WsLaunch launch;                    ///< is not read
    const std::uint32_t* lds = nullptr; ///< the image of LDS, as swizzled as products read it
    const std::uint32_t* a = nullptr;   ///< words_a of every thread; used with `a_in_registers`
    float* d = nullptr;                 ///< read and written
    std::int32_t lds_bytes = 0;         ///< a multiple of 16
    std::int32_t b = 0;                 ///< where B begins in LDS; A begins at 0
    std::int32_t b_lines = 0;           ///< of a block of 64 elements
    std::int32_t steps = 1;
    std::int32_t a_in_registers = 0;
};

} // namespace fmha::hip_target::test
