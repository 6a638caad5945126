#pragma once

#include "dispatcher/types/element_type.hpp"
#include "kernels/programs/device.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Tiles that warp-group products read: columns of 128 bytes, one block of them after another. A line of a block is 128
/// bytes; its units of 16 bytes change places by an XOR with bits 7 to 9 of their address (PTX ISA, wgmma, 128-byte swizzle).
/// A block begins at a multiple of 1024 bytes.
struct SwizzledTile {
    static constexpr int line_bytes = 128, alignment = 1024;
    static constexpr int group_lines = alignment / line_bytes; ///< units change places within so many

    FMHA_DEVICE static constexpr int swizzled(int address) { return address ^ (address >> 3 & 0x70); }
    FMHA_DEVICE static constexpr int block_bytes(int lines) { return lines * line_bytes; }
    /// Elements of a line of a block.
    FMHA_DEVICE static constexpr int block_elements(ElementType type) {
        return line_bytes * 8 / element_bits(type);
    }
    FMHA_DEVICE static constexpr int bytes(int lines, int elements, ElementType type) {
        return block_bytes(lines) * ((elements + block_elements(type) - 1) / block_elements(type));
    }
};

/// Depth of one warp-group product: 32 bytes of a line.
FMHA_DEVICE constexpr int group_depth(ElementType type) {
    return 256 / element_bits(type);
}

/// Products of 8 bits take a right operand whose even lines come first, then the odd ones. This is where the instruction's register
/// `operand` of D, of `count` a thread, stands among a thread's accumulators: they hold 16 columns by eights. A thread's own columns of
/// 16 are four neighbours then, in every one of its rows. An operand register of A is made of these.
FMHA_DEVICE constexpr int interleaved_register(int operand, int count) {
    const int half = count / 2, odd = operand / half, at = operand % half;
    return at / 4 * 8 + odd * 4 + at % 4;
}

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
