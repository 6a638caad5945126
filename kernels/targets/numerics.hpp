#pragma once

#include "dispatcher/types/element.hpp"
#include "dispatcher/types/kernel_config.hpp"

/// What every target says about its arithmetic, in one vocabulary.
namespace fmha::targets {

/// What the gates need to know about the arithmetic of a kernel (tolerances B.1). The defaults are those of a
/// target that multiplies exactly and accumulates in IEEE fp32.
struct Numerics {
    ElementType o_type = ElementType::fp32;
    double u_o = 0.0, f_o = 0.0; ///< roundoff and floor of O's storage type
    double u_p = 0.0, f_p = 0.0; ///< of P's, after its pre-scale; at least 2^-126, where exp2 flushes
    int p_shift = 0;             ///< P is multiplied by 2^p_shift before its cast (T-6)
    double u_m = 0.0;            ///< extra rounding of product operands
    double u_a = 0x1p-24;        ///< accumulator
    double eps_e = 0x1p-22;      ///< relative error of the exponential
    double eps_t = 0x1p-20;      ///< absolute error of tanh
    bool normalised_p = false;   ///< P is cast before division by the row total
    bool truncating = false;     ///< the matrix unit truncates its sums, so that their errors do not cancel
};

/// The part of the declaration that follows from the types alone: O's and P's roundoff, floor and pre-scale. The 8-bit
/// flavour follows from the configuration's architecture (T-1).
Numerics storage_numerics(const KernelConfig& config);

} // namespace fmha::targets
