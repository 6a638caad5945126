#pragma once

#include <cstdint>

/// Moving a register across the lanes of a wave.
namespace fmha::hip_target::amd {

#if defined(__GFX9__)
inline constexpr int lanes = 64;
#else
inline constexpr int lanes = 32;
#endif

__attribute__((device, always_inline)) inline int lane() {
    return static_cast<int>(__builtin_amdgcn_workitem_id_x()) & (lanes - 1);
}

/// A number that the wave shares, in a scalar register. The vector unit compares 64 bits, so that numbers computed from such comparisons
/// are not there by themselves.
__attribute__((device, always_inline)) inline int uniform(int value) {
    return __builtin_amdgcn_readfirstlane(value);
}
/// The same of an address, as a number.
__attribute__((device, always_inline)) inline std::uint64_t uniform(const char* place) {
    const auto bits = reinterpret_cast<std::uint64_t>(place);
    const auto low = static_cast<std::uint32_t>(uniform(static_cast<int>(bits))),
               high = static_cast<std::uint32_t>(uniform(static_cast<int>(bits >> 32U)));
    return std::uint64_t{high} << 32U | low;
}

/// The word of lane ^ mask, by any mask: through the LDS unit's crossbar, which stores nothing.
__attribute__((device, always_inline)) inline std::uint32_t permuted(std::uint32_t word, int mask) {
    return static_cast<std::uint32_t>(
        __builtin_amdgcn_ds_bpermute((lane() ^ mask) * 4, static_cast<int>(word)));
}

#if defined(__GFX11__) || defined(__GFX12__)
/// Rows of 16 lanes exchanged by one vector instruction.
__attribute__((device, always_inline)) inline std::uint32_t other_row(std::uint32_t word) {
    return __builtin_amdgcn_permlanex16(word, word, 0x76543210U, 0xFEDCBA98U, true, false);
}
#elif defined(__gfx950__)
// A swap of v0 and v1 leaves the even (lower) halves of both in v0 and the odd (upper) ones in v1. With the same word
// in both, each lane finds its partner's in one of them.
__attribute__((device, always_inline)) inline std::uint32_t other_row(std::uint32_t word) {
    const auto swapped = __builtin_amdgcn_permlane16_swap(word, word, false, false);
    return (lane() & 16) == 0 ? swapped[1] : swapped[0];
}
__attribute__((device, always_inline)) inline std::uint32_t other_half(std::uint32_t word) {
    const auto swapped = __builtin_amdgcn_permlane32_swap(word, word, false, false);
    return (lane() & 32) == 0 ? swapped[1] : swapped[0];
}
/// The swap of the instruction: of two lanes that differ in `mask`, 16 or 32, the upper one's `low` for the lower one's `high`.
__attribute__((device, always_inline)) inline void trade(std::uint32_t& low, std::uint32_t& high, int mask) {
    const auto swapped = mask == 32 ? __builtin_amdgcn_permlane32_swap(low, high, false, false)
                                    : __builtin_amdgcn_permlane16_swap(low, high, false, false);
    low = swapped[0];
    high = swapped[1];
}
#else
__attribute__((device, always_inline)) inline std::uint32_t other_row(std::uint32_t word) {
    constexpr int swap_16 = 16 << 10 | 0x1F;
    return static_cast<std::uint32_t>(__builtin_amdgcn_ds_swizzle(static_cast<int>(word), swap_16));
}
#endif
#if !defined(__gfx950__)
__attribute__((device, always_inline)) inline std::uint32_t other_half(std::uint32_t word) {
    return permuted(word, 32);
}
#endif

/// The word of the other lane of a pair: lanes 1, 0, 3, 2 of every four.
__attribute__((device, always_inline)) inline std::uint32_t neighbour(std::uint32_t word) {
    constexpr int swapped = 0xB1, all = 0xF;
    return static_cast<std::uint32_t>(
        __builtin_amdgcn_mov_dpp(static_cast<int>(word), swapped, all, all, true));
}

/// The word of lane ^ mask. Row sums and maxima of the fragments here need masks 16 and 32, transposing pairs 1.
__attribute__((device, always_inline)) inline std::uint32_t exchanged(std::uint32_t word, int mask) {
    if (mask == 1) return neighbour(word);
    if (mask == 16) return other_row(word);
    if (mask == 32) return other_half(word);
    return permuted(word, mask);
}

/// The words of this lane and of lane ^ mask, in any order.
struct Both {
    std::uint32_t first = 0, second = 0;
};
__attribute__((device, always_inline)) inline Both both_of(std::uint32_t word, int mask) {
#if defined(__gfx950__)
    if (mask == 16 || mask == 32) { // the swap gives both lanes the same two words: nothing to select
        Both both{word, word};
        trade(both.first, both.second, mask);
        return both;
    }
#endif
    return {word, exchanged(word, mask)};
}

} // namespace fmha::hip_target::amd
