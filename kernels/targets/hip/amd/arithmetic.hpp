#pragma once

#include "kernels/targets/hip/amd/pack.hpp"

#include <cstdint>

namespace fmha::hip_target::amd {

/// The machine's functions of numbers.
struct Arithmetic {
    /// One instruction on CDNA.
    __attribute__((device, always_inline)) static void add_pair(float* x, float y0, float y1) {
        const Vector<float, 2> sum = Vector<float, 2>{x[0], x[1]} + Vector<float, 2>{y0, y1};
        x[0] = sum[0];
        x[1] = sum[1];
    }
    __attribute__((device, always_inline)) static void multiply_pair(float* x, float y0, float y1) {
        const Vector<float, 2> product = Vector<float, 2>{x[0], x[1]} * Vector<float, 2>{y0, y1};
        x[0] = product[0];
        x[1] = product[1];
    }
    __attribute__((device, always_inline)) static void add_products(float* sum, float factor,
                                                                    const float* y) {
        const Vector<float, 2> result = __builtin_elementwise_fma(
            Vector<float, 2>{factor, factor}, Vector<float, 2>{y[0], y[1]}, Vector<float, 2>{sum[0], sum[1]});
        sum[0] = result[0];
        sum[1] = result[1];
    }
    __attribute__((device, always_inline)) static float exp2(float x) { return __builtin_amdgcn_exp2f(x); }
    __attribute__((device, always_inline)) static float log(float x) {
        constexpr float ln2 = 0x1.62E43p-1F;
        return __builtin_amdgcn_logf(x) * ln2;
    }
    // fmax() would first quiet a word that came from another lane and may be anything to the compiler.
    __attribute__((device, always_inline)) static float larger(float a, float b) {
        float result;
        asm("v_max_f32_e32 %0, %1, %2" : "=v"(result) : "v"(a), "v"(b));
        return result;
    }
    __attribute__((device, always_inline)) static float quotient(float a, float b) { return a / b; }
    __attribute__((device, always_inline)) static float reciprocal(float x) {
        return __builtin_amdgcn_rcpf(x);
    }

    __attribute__((device, always_inline)) static float unpack(std::uint32_t bits, ElementType type) {
        return amd::unpack(bits, type);
    }
    __attribute__((device, always_inline)) static std::uint32_t pack(const float* x, ElementType type) {
        return amd::pack(x, type);
    }
    __attribute__((device, always_inline)) static std::uint32_t pack_results(const float* x,
                                                                             ElementType type) {
        return amd::pack_results(x, type);
    }
    __attribute__((device, always_inline)) static std::uint32_t
    pack_quotients(const float* x, ElementType type, float divisor) {
        return amd::pack_quotients(x, type, divisor);
    }
    __attribute__((device, always_inline)) static std::uint32_t round_operand(std::uint32_t word) {
        return word;
    }
};

} // namespace fmha::hip_target::amd
