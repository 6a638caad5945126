#pragma once

#include "dispatcher/types/fields.hpp"

#include <cstdint>

namespace fmha {

/// How a kernel rounds, as it declares (tolerances B.1): targets say it, bounds and gates read it. The defaults are those
/// of a kernel that multiplies exactly, accumulates in IEEE fp32 and stores fp32.
struct Numerics {
    double u_o = 0x1p-24, f_o = 0x1p-150; ///< roundoff and floor of O's storage type
    double u_p = 0.0, f_p = 0.0;          ///< of P's, f_p divided by P's pre-scale; u_p = 0 if P stays fp32
    int p_shift = 0;                      ///< P is multiplied by 2^p_shift before its cast (T-6)
    double u_m = 0.0;                     ///< extra rounding of product operands
    double u_a = 0x1p-24;                 ///< accumulator roundoff
    double eps_e = 0x1p-22;               ///< relative error of the exponential
    double eps_t = 0x1p-20;               ///< absolute error of tanh
    bool normalised_p = false;            ///< P is divided by the normaliser before its cast (T-6)
    bool truncating = false; ///< the matrix unit truncates its sums, so that their errors do not cancel
    std::int64_t promotion_interval =
        0; ///< products summed with u_a before promotion to fp32; 0 = never (B.8)

    friend bool operator==(const Numerics&, const Numerics&) = default;
};
FMHA_FIELDS(Numerics, u_o, f_o, u_p, f_p, p_shift, u_m, u_a, eps_e, eps_t, normalised_p, truncating,
            promotion_interval)

} // namespace fmha
