#pragma once

#include "kernels/programs/device.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Tiles that warp-group products read: columns of 64 elements of 16 bits, one block of them after another. A line of a block is 128
/// bytes; its units of 16 bytes change places by an XOR with bits 7 to 9 of their address (PTX ISA, wgmma, 128-byte swizzle).
/// A block begins at a multiple of 1024 bytes.
struct SwizzledTile {
    static constexpr int line_bytes = 128, block_elements = 64, alignment = 1024;

    FMHA_DEVICE static constexpr int swizzled(int address) { return address ^ (address >> 3 & 0x70); }
    FMHA_DEVICE static constexpr int block_bytes(int lines) { return lines * line_bytes; }
    FMHA_DEVICE static constexpr int bytes(int lines, int elements) {
        return block_bytes(lines) * ((elements + block_elements - 1) / block_elements);
    }
};

/// Where a warp-group product finds an operand in LDS: the 64-bit matrix descriptor of sm_90a.
struct MatrixDescriptor {
    std::uint64_t bits = 0;

    /// `leading`: bytes from one block of 64 to the next along the lines; `stride`: bytes from 8 lines to the next 8.
    FMHA_DEVICE static constexpr MatrixDescriptor of(std::uint32_t address, int leading, int stride) {
        constexpr std::uint64_t swizzle_128 = 1;
        return {(address & 0x3FFFFU) >> 4U | static_cast<std::uint64_t>(leading >> 4 & 0x3FFF) << 16U |
                static_cast<std::uint64_t>(stride >> 4 & 0x3FFF) << 32U | swizzle_128 << 62U};
    }
    /// The same operand `bytes` further on, within the memory of a block.
    FMHA_DEVICE constexpr MatrixDescriptor operator+(int bytes) const {
        return {bits + static_cast<std::uint32_t>(bytes >> 4)};
    }
    constexpr int address() const { return static_cast<int>((bits & 0x3FFFU) << 4U); }
    constexpr int leading() const { return static_cast<int>((bits >> 16U & 0x3FFFU) << 4U); }
    constexpr int stride() const { return static_cast<int>((bits >> 32U & 0x3FFFU) << 4U); }
    constexpr int swizzle() const { return static_cast<int>(bits >> 62U); }
};

} // namespace fmha::hip_target
