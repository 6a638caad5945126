#include "reference/bounds.hpp"

#include "reference/distance.hpp"
#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fmha::reference {
namespace {

/// Weights this small are where binary64's exponential ends; the oracles may drop them at different points.
constexpr double lost_weight = 1e-290;

/// Not infinity: times a sum of nothing it must give nothing.
constexpr double unbounded = std::numeric_limits<double>::max();

/// B.4 without η: the sum of the weights, the exponentials in it, and the logarithm.
double lse_rounding(const Numerics& kernel, std::int64_t seqlen_k, double lse) {
    return accumulation_growth(seqlen_k, kernel) + 2.0 * kernel.eps_e + 4.0 * u32 * (1.0 + std::abs(lse));
}

} // namespace

Numerics kernel_numerics(const ElementTypes& types, double p_prescale) {
    Numerics kernel;
    kernel.u_o = unit_roundoff(types.o);
    kernel.f_o = rounding_floor(types.o);
    kernel.f_p = least_exponential;
    if (types.p != ElementType::fp32) {
        kernel.u_p = unit_roundoff(types.p);
        kernel.f_p = std::max(kernel.f_p, rounding_floor(types.p) / p_prescale);
    }
    return kernel;
}

double strict_growth(double n, double u) {
    return n * u < 1.0 ? n * u / (1.0 - n * u) : unbounded;
}

double probable_growth(double n, double u) {
    return std::expm1(8.0 * std::sqrt(n) * u + n * u * u);
}

double accumulation_growth(std::int64_t n, const Numerics& kernel) {
    const auto terms = static_cast<double>(n);
    const bool strict = kernel.truncating || kernel.u_a > 0x1p-20;
    const auto interval = static_cast<double>(kernel.promotion_interval);
    if (interval > 0.0 && terms > interval) {
        const double inner =
            strict ? strict_growth(interval, kernel.u_a) : probable_growth(interval, kernel.u_a);
        return inner + probable_growth(std::ceil(terms / interval), u32);
    }
    return strict ? strict_growth(terms, kernel.u_a) : probable_growth(terms, kernel.u_a);
}

double alibi_error(double range, double gap, double max_a) {
    // Keys whose weight is below e^-40 of the row's largest change nothing, and M − s ≥ β0 − gap − β − 2·max a.
    constexpr double negligible = 40.0;
    return 6.0 * u32 * std::min(range, gap + negligible + 2.0 * max_a);
}

namespace {

/// η_S of B.2. |M − β0| is at most M − max s + max a: no score is further from its bias than a, and none of the largest bias below β0 − a.
double sink_error(const ForwardRows& rows, std::int64_t row) {
    const double above = rows.row_max(row) - rows.score_max(row);
    return above > 0.0 && std::isfinite(above) ? 3.0 * u32 * (above + rows.max_a(row)) : 0.0;
}

} // namespace

RowBound::RowBound(const ForwardRows& rows, std::int64_t row) : rows_(rows), row_(row) {
    const Numerics& kernel = rows.numerics;
    relative_ = std::expm1(2.0 * (rows.eta(row) + sink_error(rows, row))) + 2.0 * kernel.eps_e + kernel.u_p +
                kernel.u_m + accumulation_growth(2 * rows.seqlen_k(row) + 8, kernel) + 8.0 * u32;
    const double normaliser = kernel.normalised_p ? 1.0 : std::max(1.0, rows.ell(row));
    p_floor_ = kernel.f_p / (rows.p_undrop * normaliser);
}

double RowBound::error(std::int64_t c) const {
    // A row without weight has no relative error, however large (even infinite) that of its scores is.
    const double weighted = rows_.weighted_abs(row_, c);
    return (weighted > 0.0 ? weighted * relative_ : 0.0) + p_floor_ * rows_.abs_v(row_, c);
}

double RowBound::limit(std::int64_t c) const {
    const Numerics& kernel = rows_.numerics;
    return std::abs(rows_.scale_o) * (1.0 + kernel.u_o) * error(c) + kernel.u_o * std::abs(expected(c)) +
           kernel.f_o;
}

double RowBound::variance(std::int64_t c) const {
    const Numerics& kernel = rows_.numerics;
    const double inside = rows_.weight_variance(row_, c) + square(u32 * rows_.weighted_abs(row_, c)) +
                          square(p_floor_) / 3.0 * rows_.square_v(row_, c);
    return square(kernel.u_o * expected(c)) / 3.0 + square(rows_.scale_o) * inside + square(kernel.f_o) / 3.0;
}

bool code_reachable(ElementType type, double got, double exact, double error) {
    // Rounding is monotonic, so the roundings of exact ± error enclose those of everything between them.
    return round_to(type, exact - error) <= got && got <= round_to(type, exact + error);
}

double lse_limit(const ForwardRows& rows, std::int64_t row) {
    return rows.eta(row) + lse_rounding(rows.numerics, rows.seqlen_k(row), rows.lse(row));
}

double empty_row_lse_limit(const Numerics& kernel, std::int64_t seqlen_k, double sink) {
    return lse_rounding(kernel, seqlen_k, sink);
}

double oracle_disagreement(const ForwardRows& x, const ForwardRows& y) {
    if (x.rows != y.rows || x.o.cols() != y.o.cols()) return infinity;
    double worst = 0.0;
    for (std::int64_t r = 0; r < x.o.rows(); ++r) {
        if (x.visible_keys(r) != y.visible_keys(r) || x.first_visible(r) != y.first_visible(r) ||
            x.last_visible(r) != y.last_visible(r))
            return infinity;
        const double magnitude = x.max_a(r);
        const double lse_bound = 1e-12 * (1.0 + std::abs(x.lse(r)) + magnitude);
        worst = std::max(worst, distance(x.lse(r), y.lse(r), lse_bound));
        // Scores as large as the LSE have lost that many bits to their rounding in binary64.
        const double score = std::isfinite(x.lse(r)) ? 0x1p-50 * std::abs(x.lse(r)) : 0.0;
        const double relative = 1e-12 * std::max(1.0, magnitude) + score;
        for (std::int64_t c = 0; c < x.o.cols(); ++c)
            worst = std::max(worst,
                             distance(x.o(r, c), y.o(r, c), relative * x.weighted_abs(r, c) + lost_weight));
    }
    return worst;
}

} // namespace fmha::reference
