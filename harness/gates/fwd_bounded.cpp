#include "harness/gates/fwd_bounded.hpp"

#include "reference/bounds.hpp"

#include <cmath>

namespace fmha::harness {

void BoundedO::read(std::int64_t row, BoundedRow& into) const {
    const reference::RowBound bound(rows_, row);
    into.id = rows_.rows[static_cast<std::size_t>(row)];
    into.resize(static_cast<std::size_t>(rows_.o.cols()));
    // The model's score error grows with |s| and not with the distance to the row's maximum, which a sink logit above every
    // score makes large. Beside the rounding of a 16-bit P or O that does not count; with fp32 it is all there is.
    into.in_rms = type() != ElementType::fp32 || !(rows_.row_max(row) > rows_.score_max(row));
    into.in_mean = rows_.seqlen_k(row) >= 64;
    const bool narrow = element_bits(type()) <= 8;
    for (std::size_t n = 0; n < into.value.size(); ++n) {
        const auto c = static_cast<Eigen::Index>(n);
        into.value[n] = bound.expected(c);
        into.limit[n] = bound.limit(c);
        if (narrow) into.error[n] = std::abs(rows_.scale_o) * bound.error(c);
        if (into.in_rms) into.variance[n] = bound.variance(c);
    }
}

/// The RMS model takes rounding errors as independent. With zeros for Q and K all rows are one row, with integers
/// P takes the same few values in every row, and with nearly flat scores an 8-bit O takes very few values. Ties round as
/// wrongly as anything can, all of them.
bool BoundedO::has_rms() const {
    switch (fill_) {
    case Fill::zeros:
    case Fill::integers:
    case Fill::ties:
    case Fill::weight_ties:
        return false;
    case Fill::indexed:
        return element_bits(type()) > 8;
    default:
        return true;
    }
}

/// Sign statistics need data without structure, and a P whose small values do not all become zero: e2m1 has three binades.
bool BoundedO::has_mean() const {
    if (p_type_ == ElementType::fp4) return false;
    return fill_ == Fill::normal || fill_ == Fill::sharp || fill_ == Fill::uniform || fill_ == Fill::rising;
}

double BoundedO::lean() const {
    return rows_.numerics.u_p * rows_.numerics.u_p / 3.0;
}

void BoundedLse::read(std::int64_t row, BoundedRow& into) const {
    into.id = rows_.rows[static_cast<std::size_t>(row)];
    into.resize(1);
    into.value.front() = rows_.lse(row);
    into.limit.front() = reference::lse_limit(rows_, row);
}

} // namespace fmha::harness
