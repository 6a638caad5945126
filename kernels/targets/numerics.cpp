#include "kernels/targets/numerics.hpp"

#include "dispatcher/types/family_traits.hpp"
#include "kernels/targets/stored_types.hpp"

#include <algorithm>
#include <cmath>

namespace fmha::targets {
namespace {

/// The exponential returns 0 below the normal range, for every type that the weight is then cast to.
constexpr double smallest_normal_weight = 0x1p-126;

struct Roundoff {
    double unit = 0.0, floor = 0.0;
};

/// Half an ulp relative, and half the smallest subnormal (table 2.1).
Roundoff roundoff_of(ElementType type) {
    switch (type) {
    case ElementType::fp32:
        return {0x1p-24, 0x1p-150};
    case ElementType::fp16:
        return {0x1p-11, 0x1p-25};
    case ElementType::bf16:
        return {0x1p-8, 0x1p-134};
    case ElementType::fp8_ocp:
        return {0x1p-4, 0x1p-10};
    case ElementType::fp8_fnuz:
        return {0x1p-4, 0x1p-11};
    case ElementType::bf8_ocp:
        return {0x1p-3, 0x1p-17};
    case ElementType::bf8_fnuz:
        return {0x1p-3, 0x1p-18};
    case ElementType::fp4:
        return {0x1p-2, 0x1p-2};
    case ElementType::e8m0:
    case ElementType::uint8:
    case ElementType::int32:
        break;
    }
    return {};
}

} // namespace

Numerics storage_numerics(const KernelConfig& config) {
    const ElementTypes types = stored_types(config);
    Numerics out;
    const bool partial = traits_of(config.signature.family).stores_splits; // S-3
    out.u_o = roundoff_of(partial ? ElementType::fp32 : types.o).unit;
    out.f_o = roundoff_of(partial ? ElementType::fp32 : types.o).floor;
    out.f_p = smallest_normal_weight;
    if (types.p == ElementType::fp32) return out;

    // e4m3 has too few binades for weights in [0, 1]; moving them up costs nothing (T-6).
    if (types.p == ElementType::fp8_ocp) out.p_shift = 8;
    if (types.p == ElementType::fp8_fnuz) out.p_shift = 7;
    out.u_p = roundoff_of(types.p).unit;
    out.f_p = std::max(smallest_normal_weight, std::ldexp(roundoff_of(types.p).floor, -out.p_shift));
    // fp4 weights carry a power-of-two scale per 32 keys, at most 2^-2 because a weight is at most 1.
    if (types.p == ElementType::fp4) out.f_p = 0x1p-4;
    return out;
}

Numerics row_numerics(const KernelConfig& config) {
    const ElementType o = stored_types(config).o;
    Numerics out;
    out.u_o = roundoff_of(o).unit;
    out.f_o = roundoff_of(o).floor;
    out.f_p = smallest_normal_weight;
    return out;
}

} // namespace fmha::targets
