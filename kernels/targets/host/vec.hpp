#pragma once

#include <cstdint>
#include <cstring>

/// The vector registers of the machine that this is compiled for, through the compiler's vector extension,
/// and the few functions on them that the host target needs.
namespace fmha::host_target {

#if defined(__AVX512F__)
inline constexpr int vec_lanes = 16;
#else
inline constexpr int vec_lanes = 8;
#endif

using Vec = float __attribute__((vector_size(4 * vec_lanes)));
using VecInt = std::int32_t __attribute__((vector_size(4 * vec_lanes)));

inline Vec load_vec(const float* from) {
    Vec v;
    std::memcpy(&v, from, sizeof v);
    return v;
}
inline void store_vec(float* to, Vec v) {
    std::memcpy(to, &v, sizeof v);
}
inline Vec splat(float x) {
    return x - Vec{};
}
inline Vec max(Vec a, Vec b) {
    return a > b ? a : b;
}

/// 2^x with relative error below 2^-22; exactly 1 at 0, and 0 below the normal range (so also at −∞).
/// x must be at most 127.
inline Vec exp2(Vec x) {
    const Vec clamped = max(x, splat(-126.0F));
    // Adding 1.5·2^23 rounds to an integer and leaves it in the low bits.
    const Vec shifted = clamped + 12582912.0F;
    const Vec f = clamped - (shifted - 12582912.0F);
    Vec p = splat(0x1.470b499f14c2dp-13F);
    p = p * f + 0x1.5f7276d939677p-10F;
    p = p * f + 0x1.3b270e6522c53p-7F;
    p = p * f + 0x1.c6ae72dfbc0ffp-5F;
    p = p * f + 0x1.ebfbe2c53fd1ep-3F;
    p = p * f + 0x1.62e4311733d1fp-1F;
    p = p * f + 1.0F;
    VecInt bits, exponent;
    std::memcpy(&bits, &p, sizeof bits);
    std::memcpy(&exponent, &shifted, sizeof exponent);
    bits += exponent << 23;
    Vec result;
    std::memcpy(&result, &bits, sizeof result);
    return x < -126.0F ? Vec{} : result;
}

/// tanh with an absolute error below 2^-20 (tolerances: ε_t).
inline Vec tanh(Vec x) {
    const Vec magnitude = x < 0.0F ? -x : x;
    const Vec e = exp2(magnitude * -2.88539008177792681F);
    const Vec t = (1.0F - e) / (1.0F + e);
    return x < 0.0F ? -t : t;
}

inline float lane_max(Vec v) {
    float m = v[0];
    for (int i = 1; i < vec_lanes; ++i) m = m > v[i] ? m : v[i];
    return m;
}
inline float lane_sum(Vec v) {
    float s = 0.0F;
    for (int i = 0; i < vec_lanes; ++i) s += v[i];
    return s;
}

/// exp2 of one value, by the same arithmetic.
inline float exp2(float x) {
    return exp2(splat(x))[0];
}

} // namespace fmha::host_target
