#include "harness/run/declared_numerics.hpp"

namespace fmha::harness {

reference::KernelNumerics in_reference_terms(const targets::Numerics& declared) {
    reference::KernelNumerics numerics;
    numerics.u_o = declared.u_o;
    numerics.f_o = declared.f_o;
    numerics.u_p = declared.u_p;
    numerics.f_p = declared.f_p;
    numerics.u_m = declared.u_m;
    numerics.u_a = declared.u_a;
    numerics.eps_e = declared.eps_e;
    numerics.eps_t = declared.eps_t;
    numerics.normalised_p = declared.normalised_p;
    numerics.truncating = declared.truncating;
    return numerics;
}

} // namespace fmha::harness
