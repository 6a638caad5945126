#pragma once

#include "kernels/targets/hip/amd/exchange.hpp"
#include "kernels/targets/hip/amd/matrix.hpp"

#include <cstdint>

/// Global memory through buffer descriptors, and copies from there straight to LDS.
namespace fmha::hip_target::amd {

inline constexpr int nowhere = static_cast<int>(0x80000000U); ///< beyond the end of every buffer

#if defined(__GFX9__)
inline constexpr int buffer_words = 0x00020000; ///< the last of a descriptor
#else
inline constexpr int buffer_words = 0x31004000;
#endif
inline constexpr int buffer_bytes = 0x7FFFFFFF;

__attribute__((device, always_inline)) inline auto buffer(const char* from, int bytes = buffer_bytes) {
    return __builtin_amdgcn_make_buffer_rsrc(const_cast<char*>(from), 0, bytes, buffer_words);
}

__attribute__((device, always_inline)) inline Vector<std::uint32_t, 4> descriptor(const char* from,
                                                                                  int bytes) {
    const std::uint64_t begin = uniform(from);
    return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin >> 32U) & 0xFFFFU,
            static_cast<std::uint32_t>(bytes), buffer_words};
}
/// m0 names the place of the wave's first unit; it needs a wait state. Not by a builtin, whose copies compilers wait for
/// where they see fit: at barriers, some of them before every read of LDS.
template <int n>
__attribute__((device, always_inline)) inline void start_copy(Vector<std::uint32_t, 4> memory, int at,
                                                              int below, int first) {
    if constexpr (n == 1)
        asm volatile("s_nop 0\n\tbuffer_load_dword %0, %1, %2 offen lds"
                     :
                     : "v"(at), "s"(memory), "Is"(below), "{m0}"(first)
                     : "memory");
    else
#if defined(__gfx950__)
        asm volatile("s_nop 0\n\tbuffer_load_dwordx4 %0, %1, %2 offen lds"
                     :
                     : "v"(at), "s"(memory), "Is"(below), "{m0}"(first)
                     : "memory");
#else
        __builtin_trap(); // the plan gives this unit single words only
#endif
}

} // namespace fmha::hip_target::amd
