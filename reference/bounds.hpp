#pragma once

#include "reference/forward.hpp"

#include <cstdint>
#include <limits>

/// The limits of tolerances B.1 to B.4 as pure functions of a reference result with companions.
namespace fmha::reference {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
/// The unit roundoff of fp32.
inline constexpr double u32 = 0x1p-24;
/// Exponentials below it are 0 in fp32.
inline constexpr double least_exponential = 0x1p-126;

/// γ(n) = n·u/(1 − n·u); the largest double when n·u ≥ 1.
double strict_growth(double n, double u);
/// γ̃(n) = expm1(8√n·u + n·u²).
double probable_growth(double n, double u);
/// Growth of a sum of n products under the kernel's declaration: strict when u_a > 2^-20 or the unit
/// truncates, in two levels when it promotes partial sums to fp32 (B.8), probabilistic otherwise.
double accumulation_growth(std::int64_t n, const Numerics& kernel);

/// The part of ALiBi in η of a row (B.2): `range` is the largest |β(j) − β0| and `gap` the smallest, `max_a` the largest a(j).
/// The gap is above 0 where a split lacks the key of the largest β of the row, which is β0.
double alibi_error(double range, double gap, double max_a);

/// Limits of one row of O.
class RowBound {
  public:
    /// `rows` must have companions and outlive this.
    RowBound(const ForwardRows& rows, std::int64_t row);

    /// The expected value of the gates: scale_o·O of F-10, unrounded and unclamped.
    double expected(std::int64_t c) const { return rows_.scale_o * rows_.o(row_, c); }
    /// E(c) of B.2, before scale_o.
    double error(std::int64_t c) const;
    /// G1: the largest |o − expected(c)| that is accepted.
    double limit(std::int64_t c) const;
    /// G2: predicted variance of o − expected(c).
    double variance(std::int64_t c) const;

  private:
    const ForwardRows& rows_;
    std::int64_t row_;
    double relative_ = 0.0; ///< factor of A in E
    double p_floor_ = 0.0;  ///< factor of V1 in E
};

/// G1 for 8-bit outputs (B.2): whether rounding some value within `error` of `exact` to `type` gives `got`. All three are
/// in units of the stored output.
bool code_reachable(ElementType type, double got, double exact, double error);

/// G3: the largest |lse − reference| that is accepted where the reference is finite; infinities must
/// coincide.
double lse_limit(const ForwardRows& rows, std::int64_t row);
/// The same for a row without visible key, whose LSE is its sink logit; no score has an error there.
double empty_row_lse_limit(const Numerics& kernel, std::int64_t seqlen_k, double sink);

/// The largest distance between two reference results in units of the agreement bound of B.1; at most 1 when
/// they agree. Infinite when rows, infinities, visible keys or shapes differ. `x` must have companions.
double oracle_disagreement(const ForwardRows& x, const ForwardRows& y);

} // namespace fmha::reference
