#pragma once

#include "kernels/targets/hip/ws_launch.hpp"

#include <cstdint>

namespace fmha::hip_target::test {

/// Matrix reads and writes of one warp group. LDS has a line of 16 bytes of every thread that it reads, and behind them one that it writes.
struct MatrixLinesArgs {
    static constexpr int threads = 128, words = 4, line_bytes = 16, lds_bytes = 2 * threads * line_bytes;

    WsLaunch launch;                      ///< is not read
    const std::uint32_t* image = nullptr; ///< of LDS, lds_bytes
    const std::int32_t* reads = nullptr;  ///< which line a thread names, and
    const std::int32_t* writes = nullptr; ///< … of the lines behind those
    std::uint32_t* registers = nullptr;   ///< `words` of every thread
    std::uint32_t* result = nullptr;      ///< LDS after the writes
    std::int32_t transposed = 0;
};

} // namespace fmha::hip_target::test
