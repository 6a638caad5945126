#pragma once

#include "dispatcher/types/element_type.hpp"
#include "kernels/programs/formats.hpp"
#include "kernels/targets/hip/amd/matrix.hpp"
#include "kernels/targets/hip/bf16_rounding.hpp"

#include <cstdint>

/// Storage codes to fp32, and fp32 values to packed words, rounded to nearest-even (T-5): by the hardware's conversions
/// where the architecture has them for the type.
namespace fmha::hip_target::amd {

#if defined(__gfx942__) || defined(__gfx950__) || defined(__GFX12__)
/// The flavour of 8-bit codes that v_cvt_pk_fp8_f32 and v_cvt_pk_bf8_f32 produce.
#if defined(__gfx942__)
inline constexpr ElementType fp8 = ElementType::fp8_fnuz, bf8 = ElementType::bf8_fnuz;
#else
inline constexpr ElementType fp8 = ElementType::fp8_ocp, bf8 = ElementType::bf8_ocp;
#endif

/// The conversions turn numbers that overflow into NaN or infinity unless a mode bit is set; T-5 saturates. NaN passes.
__attribute__((device, always_inline)) inline float saturate(float x, float largest) {
    return x != x ? x : __builtin_amdgcn_fmed3f(x, -largest, largest);
}

__attribute__((device, always_inline)) inline std::uint32_t pack_8bit(const float* x, ElementType type) {
    const float largest = kernels::format_of(type).largest;
    const float x0 = saturate(x[0], largest), x1 = saturate(x[1], largest);
    const float x2 = saturate(x[2], largest), x3 = saturate(x[3], largest);
    int word = 0;
    if (type == fp8) {
        word = __builtin_amdgcn_cvt_pk_fp8_f32(x0, x1, word, false);
        word = __builtin_amdgcn_cvt_pk_fp8_f32(x2, x3, word, true);
    } else {
        word = __builtin_amdgcn_cvt_pk_bf8_f32(x0, x1, word, false);
        word = __builtin_amdgcn_cvt_pk_bf8_f32(x2, x3, word, true);
    }
    return static_cast<std::uint32_t>(word);
}
#endif

#if defined(__gfx950__)
/// Eight values of 4 bits, two a byte.
__attribute__((device, always_inline)) inline std::uint32_t pack_fp4(const float* x) {
    constexpr float unscaled = 1.0F;
    const float largest = kernels::format_of(ElementType::fp4).largest;
    const auto at = [&](int i) { return saturate(x[i], largest); };
    std::uint32_t word = 0;
    word = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(word, at(0), at(1), unscaled, 0);
    word = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(word, at(2), at(3), unscaled, 1);
    word = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(word, at(4), at(5), unscaled, 2);
    return __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(word, at(6), at(7), unscaled, 3);
}
#endif

/// The value of one code, which stands in the lowest bits.
__attribute__((device, always_inline)) inline float unpack(std::uint32_t bits, ElementType type) {
    if (type == ElementType::fp32) return __builtin_bit_cast(float, bits);
    if (type == ElementType::bf16) return __builtin_bit_cast(float, bits << 16U);
    if (type == ElementType::fp16)
        return static_cast<float>(__builtin_bit_cast(_Float16, static_cast<std::uint16_t>(bits)));
    return kernels::decode(bits, kernels::format_of(type));
}

/// One word from the 32 / bits values at x, the first in the lowest bits.
__attribute__((device, always_inline)) inline std::uint32_t pack(const float* x, ElementType type) {
    if (type == ElementType::fp16)
        return __builtin_bit_cast(
            std::uint32_t, __builtin_convertvector((Vector<float, 2>{x[0], x[1]}), Vector<_Float16, 2>));
    if (type == ElementType::bf16)
        return __builtin_bit_cast(std::uint32_t,
                                  __builtin_convertvector((Vector<float, 2>{x[0], x[1]}), Vector<__bf16, 2>));
#if defined(__gfx942__) || defined(__gfx950__) || defined(__GFX12__)
    if (type == fp8 || type == bf8) return pack_8bit(x, type);
#endif
#if defined(__gfx950__)
    if (type == ElementType::fp4) return pack_fp4(x);
#endif
    const int bits = element_bits(type);
    std::uint32_t word = 0;
#pragma unroll
    for (int i = 0; i < 32 / bits; ++i)
        word |= kernels::encode(x[i], type) << static_cast<unsigned>(i * bits);
    return word;
}

/// The same of results of arithmetic, without a look at NaN.
__attribute__((device, always_inline)) inline std::uint32_t pack_results(const float* x, ElementType type) {
#if !defined(__gfx950__)
    constexpr std::uint32_t upper_halves = 0x07060302U;
    if (type == ElementType::bf16)
        return __builtin_amdgcn_perm(round_upper_half(x[1]), round_upper_half(x[0]), upper_halves);
#endif
    return pack(x, type);
}

} // namespace fmha::hip_target::amd
