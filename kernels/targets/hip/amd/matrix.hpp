#pragma once

#include "kernels/targets/hip/instruction.hpp"

#include <cstdint>

/// AMD's matrix instructions on fragments. The only place besides `exchange.hpp` where the architecture is asked
/// for at compile time: a builtin of another one must not be seen by the compiler, not even in dead code.
namespace fmha::hip_target::amd {

template <class T, int n>
using Vector __attribute__((ext_vector_type(n))) = T;

using Half4 = Vector<_Float16, 4>;
using Half8 = Vector<_Float16, 8>;
using Half16 = Vector<_Float16, 16>;
using Bits4 = Vector<short, 4>;
using Bits8 = Vector<short, 8>;
using Bits16 = Vector<short, 16>;
using Bfloat8 = Vector<__bf16, 8>;
using Words2 = Vector<int, 2>;
using Words4 = Vector<int, 4>;
using Words8 = Vector<int, 8>;

/// Consecutive registers as one value of type V.
template <class V, class Fragment>
__attribute__((device, always_inline)) inline V gather(const Fragment& x, int first) {
    constexpr int count = sizeof(V) / sizeof(std::uint32_t);
    Vector<std::uint32_t, count> words;
#pragma unroll
    for (int i = 0; i < count; ++i) words[i] = __builtin_bit_cast(std::uint32_t, x.at(0, first + i));
    return __builtin_bit_cast(V, words);
}

/// C += A·B on the fragments that start at registers c0, a0 and b0, by `multiply(a, b, c)`.
template <class Operand, int outputs, class C, class AB, class AB2, class F>
__attribute__((device, always_inline)) inline void accumulate(C& c, int c0, const AB& a, int a0, const AB2& b,
                                                              int b0, F multiply) {
    auto sum =
        multiply(gather<Operand>(a, a0), gather<Operand>(b, b0), gather<Vector<float, outputs>>(c, c0));
#if defined(__GFX11__)
    // Keeps the product where it is: the compiler delays it past barriers and branches and holds its operands.
    asm volatile("" : "+v"(sum));
#endif
#pragma unroll
    for (int i = 0; i < outputs; ++i) c.at(0, c0 + i) = sum[i];
}

#if defined(__gfx950__)
/// Operands of the scaled instructions have eight words; types of 4 bits use the first four.
__attribute__((device, always_inline)) inline Words8 widened(Words8 x) {
    return x;
}
__attribute__((device, always_inline)) inline Words8 widened(Words4 x) {
    return __builtin_shufflevector(x, x, 0, 1, 2, 3, -1, -1, -1, -1);
}

/// The scale behind a fragment of type V. In a vector register: of a scalar or a constant the hardware takes the exponent of
/// an fp32 number.
template <class V, class Fragment>
__attribute__((device, always_inline)) inline int scale_of(const Fragment& x, int first) {
    std::uint32_t scale = x.at(0, first + static_cast<int>(sizeof(V) / sizeof(std::uint32_t)));
    asm("" : "+v"(scale));
    return static_cast<int>(scale);
}
/// The operand formats of these instructions.
inline constexpr int e4m3 = 0, e5m2 = 1, e2m1 = 4;
#endif

// `builtin` is a name, which no template can take.
#define FMHA_MFMA(name, operand, outputs, builtin)                                                           \
    case MatrixInstruction::name:                                                                            \
        accumulate<operand, outputs>(c, c0, a, a0, b, b0,                                                    \
                                     [](operand x, operand y, Vector<float, outputs> z) {                    \
                                         return __builtin_amdgcn_##builtin(x, y, z, 0, 0, 0);                \
                                     });                                                                     \
        break;
// A product that begins. Compilers keep its zeros in eight scalar registers, and move them to vector registers in every tile.
#define FMHA_WMMA_GFX11(name, operand, builtin, text)                                                        \
    case MatrixInstruction::name:                                                                            \
        if (begins)                                                                                          \
            accumulate<operand, 8>(c, c0, a, a0, b, b0, [](operand x, operand y, Vector<float, 8>) {         \
                Vector<float, 8> product;                                                                    \
                asm volatile(text " %0, %1, %2, 0" : "=&v"(product) : "v"(x), "v"(y));                       \
                return product;                                                                              \
            });                                                                                              \
        else                                                                                                 \
            accumulate<operand, 8>(c, c0, a, a0, b, b0, [](operand x, operand y, Vector<float, 8> z) {       \
                return __builtin_amdgcn_##builtin(x, y, z);                                                  \
            });                                                                                              \
        break;
#define FMHA_WMMA(name, operand, builtin)                                                                    \
    case MatrixInstruction::name:                                                                            \
        accumulate<operand, 8>(c, c0, a, a0, b, b0, [](operand x, operand y, Vector<float, 8> z) {           \
            return __builtin_amdgcn_##builtin(x, y, z);                                                      \
        });                                                                                                  \
        break;

#define FMHA_MFMA_SCALE(name, operand, outputs, builtin, format)                                             \
    case MatrixInstruction::name: {                                                                          \
        const int a_scale = scale_of<operand>(a, a0), b_scale = scale_of<operand>(b, b0);                    \
        accumulate<operand, outputs>(                                                                        \
            c, c0, a, a0, b, b0, [a_scale, b_scale](operand x, operand y, Vector<float, outputs> z) {        \
                return __builtin_amdgcn_##builtin(widened(x), widened(y), z, format, format, 0, a_scale, 0,  \
                                                  b_scale);                                                  \
            });                                                                                              \
        break;                                                                                               \
    }

// Scales that are both constants 0 stand for none: 1, by an instruction without scales.
#define FMHA_MFMA_WIDE(name, outputs, builtin, format)                                                       \
    case MatrixInstruction::name:                                                                            \
        accumulate<Words8, outputs>(c, c0, a, a0, b, b0, [](Words8 x, Words8 y, Vector<float, outputs> z) {  \
            return __builtin_amdgcn_##builtin(x, y, z, format, format, 0, 0, 0, 0);                          \
        });                                                                                                  \
        break;

/// `instruction` is a constant once this is inlined, so that one case is left of the switch. It must be among those that
/// this architecture has. `begins`: what C holds is 0.
template <class C, class A, class B>
__attribute__((device, always_inline)) inline void multiply(MatrixInstruction instruction, C& c, int c0,
                                                            const A& a, int a0, const B& b, int b0,
                                                            [[maybe_unused]] bool begins) {
    switch (instruction) {
#if defined(__GFX9__)
        FMHA_MFMA(mfma_32x32x8_f16, Half4, 16, mfma_f32_32x32x8f16)
        FMHA_MFMA(mfma_16x16x16_f16, Half4, 4, mfma_f32_16x16x16f16)
        FMHA_MFMA(mfma_32x32x8_bf16, Bits4, 16, mfma_f32_32x32x8bf16_1k)
        FMHA_MFMA(mfma_16x16x16_bf16, Bits4, 4, mfma_f32_16x16x16bf16_1k)
        FMHA_MFMA(mfma_32x32x2_f32, float, 16, mfma_f32_32x32x2f32)
        FMHA_MFMA(mfma_16x16x4_f32, float, 4, mfma_f32_16x16x4f32)
#endif
#if defined(__gfx942__) || defined(__gfx950__)
        FMHA_MFMA(mfma_32x32x16_fp8, long, 16, mfma_f32_32x32x16_fp8_fp8)
        FMHA_MFMA(mfma_16x16x32_fp8, long, 4, mfma_f32_16x16x32_fp8_fp8)
        FMHA_MFMA(mfma_32x32x16_bf8, long, 16, mfma_f32_32x32x16_bf8_bf8)
        FMHA_MFMA(mfma_16x16x32_bf8, long, 4, mfma_f32_16x16x32_bf8_bf8)
#endif
#if defined(__gfx950__)
        FMHA_MFMA(mfma_32x32x16_f16, Half8, 16, mfma_f32_32x32x16_f16)
        FMHA_MFMA(mfma_16x16x32_f16, Half8, 4, mfma_f32_16x16x32_f16)
        FMHA_MFMA(mfma_32x32x16_bf16, Bfloat8, 16, mfma_f32_32x32x16_bf16)
        FMHA_MFMA(mfma_16x16x32_bf16, Bfloat8, 4, mfma_f32_16x16x32_bf16)
        FMHA_MFMA_WIDE(mfma_32x32x64_fp8, 16, mfma_scale_f32_32x32x64_f8f6f4, e4m3)
        FMHA_MFMA_WIDE(mfma_32x32x64_bf8, 16, mfma_scale_f32_32x32x64_f8f6f4, e5m2)
        FMHA_MFMA_SCALE(mfma_scale_32x32x64_fp8, Words8, 16, mfma_scale_f32_32x32x64_f8f6f4, e4m3)
        FMHA_MFMA_SCALE(mfma_scale_16x16x128_fp8, Words8, 4, mfma_scale_f32_16x16x128_f8f6f4, e4m3)
        FMHA_MFMA_SCALE(mfma_scale_32x32x64_fp4, Words4, 16, mfma_scale_f32_32x32x64_f8f6f4, e2m1)
        FMHA_MFMA_SCALE(mfma_scale_16x16x128_fp4, Words4, 4, mfma_scale_f32_16x16x128_f8f6f4, e2m1)
#endif
#if defined(__GFX11__)
        FMHA_WMMA_GFX11(wmma_gfx11_16x16x16_f16, Half16, wmma_f32_16x16x16_f16_w32, "v_wmma_f32_16x16x16_f16")
        FMHA_WMMA_GFX11(wmma_gfx11_16x16x16_bf16, Bits16, wmma_f32_16x16x16_bf16_w32,
                        "v_wmma_f32_16x16x16_bf16")
#endif
#if defined(__GFX12__)
        FMHA_WMMA(wmma_gfx12_16x16x16_f16, Half8, wmma_f32_16x16x16_f16_w32_gfx12)
        FMHA_WMMA(wmma_gfx12_16x16x16_bf16, Bits8, wmma_f32_16x16x16_bf16_w32_gfx12)
        FMHA_WMMA(wmma_gfx12_16x16x16_fp8, Words2, wmma_f32_16x16x16_fp8_fp8_w32_gfx12)
        FMHA_WMMA(wmma_gfx12_16x16x16_bf8, Words2, wmma_f32_16x16x16_bf8_bf8_w32_gfx12)
#endif
    default:
        __builtin_trap();
    }
}

#undef FMHA_MFMA
#undef FMHA_MFMA_WIDE
#undef FMHA_MFMA_SCALE
#undef FMHA_WMMA
#undef FMHA_WMMA_GFX11

} // namespace fmha::hip_target::amd
