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

/// Of four numbers within the range of `type`, or NaN. Both halves of the word are written: no instruction clears it before.
__attribute__((device, always_inline)) inline std::uint32_t pack_within(const float* x, ElementType type) {
    int word;
    asm("" : "=v"(word));
    if (type == fp8) {
        word = __builtin_amdgcn_cvt_pk_fp8_f32(x[0], x[1], word, false);
        word = __builtin_amdgcn_cvt_pk_fp8_f32(x[2], x[3], word, true);
    } else {
        word = __builtin_amdgcn_cvt_pk_bf8_f32(x[0], x[1], word, false);
        word = __builtin_amdgcn_cvt_pk_bf8_f32(x[2], x[3], word, true);
    }
    return static_cast<std::uint32_t>(word);
}
__attribute__((device, always_inline)) inline std::uint32_t pack_8bit(const float* x, ElementType type) {
    const float largest = kernels::format_of(type).largest;
    const float within[4] = {saturate(x[0], largest), saturate(x[1], largest), saturate(x[2], largest),
                             saturate(x[3], largest)};
    return pack_within(within, type);
}
#endif

#if defined(__gfx950__)
/// Eight quotients x / divisor of 4 bits, two a byte. Conversions of this chip divide by a power of two.
__attribute__((device, always_inline)) inline std::uint32_t pack_fp4(const float* x, float divisor) {
    std::uint32_t word;
    asm("" : "=v"(word));
    word = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(word, x[0], x[1], divisor, 0);
    word = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(word, x[2], x[3], divisor, 1);
    word = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(word, x[4], x[5], divisor, 2);
    return __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(word, x[6], x[7], divisor, 3);
}
/// Four quotients of 8 bits.
__attribute__((device, always_inline)) inline std::uint32_t pack_within(const float* x, ElementType type,
                                                                        float divisor) {
    Vector<short, 2> word;
    asm("" : "=v"(word));
    if (type == fp8) {
        word = __builtin_amdgcn_cvt_scalef32_pk_fp8_f32(word, x[0], x[1], divisor, false);
        word = __builtin_amdgcn_cvt_scalef32_pk_fp8_f32(word, x[2], x[3], divisor, true);
    } else {
        word = __builtin_amdgcn_cvt_scalef32_pk_bf8_f32(word, x[0], x[1], divisor, false);
        word = __builtin_amdgcn_cvt_scalef32_pk_bf8_f32(word, x[2], x[3], divisor, true);
    }
    return __builtin_bit_cast(std::uint32_t, word);
}
#endif

/// The value of one code, which stands in the lowest bits.
__attribute__((device, always_inline)) inline float unpack(std::uint32_t bits, ElementType type) {
    if (type == ElementType::fp32) return __builtin_bit_cast(float, bits);
    if (type == ElementType::bf16) return __builtin_bit_cast(float, bits << 16U);
    if (type == ElementType::fp16)
        return static_cast<float>(__builtin_bit_cast(_Float16, static_cast<std::uint16_t>(bits)));
#if defined(__gfx942__) || defined(__gfx950__) || defined(__GFX12__)
    if (type == fp8) return __builtin_amdgcn_cvt_f32_fp8(static_cast<int>(bits), 0);
    if (type == bf8) return __builtin_amdgcn_cvt_f32_bf8(static_cast<int>(bits), 0);
#endif
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
    if (type == ElementType::fp4) {
        constexpr int values = 8;
        const float largest = kernels::format_of(type).largest;
        float within[values];
#pragma unroll
        for (int i = 0; i < values; ++i) within[i] = saturate(x[i], largest);
        return pack_fp4(within, 1.0F);
    }
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

/// The same of results divided by a power of two. Of 8 and 4 bits the quotients are within the type's range, or NaN: nothing saturates.
__attribute__((device, always_inline)) inline std::uint32_t pack_quotients(const float* x, ElementType type,
                                                                           float divisor) {
#if defined(__gfx950__)
    if (type == ElementType::fp4) return pack_fp4(x, divisor);
    if (type == fp8 || type == bf8) return pack_within(x, type, divisor);
#endif
    constexpr int most = 4;
    float y[most];
#pragma unroll
    for (int i = 0; i < 32 / element_bits(type); i += 2) {
        const Vector<float, 2> pair = Vector<float, 2>{x[i], x[i + 1]} * (1.0F / divisor);
        y[i] = pair[0];
        y[i + 1] = pair[1];
    }
#if defined(__gfx942__) || defined(__GFX12__)
    if (type == fp8 || type == bf8) return pack_within(y, type);
#endif
    return pack_results(y, type);
}

} // namespace fmha::hip_target::amd
