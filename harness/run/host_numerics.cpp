#include "harness/run/host_numerics.hpp"

#include "kernels/targets/host/numerics.hpp"

#include <algorithm>

namespace fmha::harness {

reference::KernelNumerics host_numerics(const KernelConfig& config) {
    const host_target::Numerics declared = host_target::numerics_of(config);
    reference::KernelNumerics numerics;
    numerics.u_o = declared.u_o;
    numerics.f_o = declared.f_o;
    numerics.u_p = declared.u_p;
    // The target's exponential has no subnormal results, whatever type P is cast to.
    numerics.f_p = std::max(declared.f_p, 0x1p-126);
    numerics.u_m = declared.u_m;
    numerics.u_a = declared.u_a;
    numerics.eps_e = declared.eps_e;
    numerics.eps_t = declared.eps_t;
    numerics.normalised_p = declared.normalised_p;
    return numerics;
}

} // namespace fmha::harness
