#pragma once

#include "reference/backward.hpp"

namespace fmha::reference {

/// A result with every table that `request` asks for in its size, filled with 0. Throws the errors of `backward`.
Gradients empty_gradients(const BwdArgs& args, const GradientRequest& request,
                          const GradientOptions& options);

/// Factors of B.9, which follow from the declaration and the extents alone.
struct GradientGrowth {
    double score = 0.0;       ///< γ̃(Dq+2) + 2u_m, of a
    double inner = 0.0;       ///< γ̃(Dv+2)
    double delta = 0.0;       ///< γ̃(Dv+1)
    double delta_floor = 0.0; ///< (Dv+1)·2^-150: products dO·O that underflow, which B.9 has no term for
    double rows = 0.0;        ///< γ̃(Sq), sums over queries
    double keys = 0.0;        ///< γ̃(Sk) and that of partial sums, sums over keys
    double cast_floor = 0.0;  ///< f/p_undrop
    double cast_step = 0.0;   ///< half the distance of the smallest numbers of the tag's type, over p_undrop
    double flush = 0.0;       ///< exponentials below it are 0 in fp32
    double subnormal = 0.0;   ///< 2^-149/p_undrop: products of fp32 that underflow

    static GradientGrowth of(const BwdArgs& args, std::int64_t seqlen_q, std::int64_t seqlen_k,
                             const GradientOptions& options);
};

} // namespace fmha::reference
