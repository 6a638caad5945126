#include "harness/gates/fwd_bounded.hpp"

#include "reference/bounds.hpp"
#include "reference/visibility.hpp"

#include <cmath>

namespace fmha::harness {

void BoundedO::read(std::int64_t row, BoundedRow& into) const {
    const reference::RowBound bound(rows_, row);
    into.id = rows_.rows[static_cast<std::size_t>(row)];
    into.resize(static_cast<std::size_t>(rows_.o.cols()));
    // The model's score error grows with |s| and not with the distance to the row's maximum, which a sink logit above every
    // score makes large. Beside the rounding of a 16-bit P or O that does not count; with fp32 it is all there is.
    into.in_rms = type() != ElementType::fp32 || !(rows_.row_max(row) > rows_.score_max(row));
    into.in_rms = into.in_rms && !weights_round_alike(row);
    into.in_mean = rows_.seqlen_k(row) >= 64;
    const bool narrow = element_bits(type()) <= 8;
    for (std::size_t n = 0; n < into.value.size(); ++n) {
        const auto c = static_cast<std::int64_t>(n);
        into.value[n] = bound.expected(c);
        into.limit[n] = bound.limit(c);
        if (narrow) into.error[n] = std::abs(rows_.scale_o) * bound.error(c);
        if (into.in_rms) into.variance[n] = bound.variance(c);
    }
}

/// Whether the weights of a row lie within one step of P's type, of which the step is at most 2·u_p of the weight. All of
/// them round to one value or two then, and with a sink logit above the scores those of every row of a head do: a head has one
/// rounding error and not many independent ones. Asked of the mean weight, as a part of the largest one.
bool BoundedO::weights_round_alike(std::int64_t row) const {
    const double step = 2.0 * rows_.numerics.u_p;
    if (step == 0.0 || rows_.visible_keys(row) == 0) return false;
    const double top = rows_.row_max(row);
    const double sink = reference::sink_logit_of(args_, rows_.rows[static_cast<std::size_t>(row)].h);
    // Where the sink leaves nothing of the sum, P is 0.
    const double sum = rows_.ell(row) - std::exp(sink - top);
    const double mean =
        sum * std::exp(top - rows_.score_max(row)) / static_cast<double>(rows_.visible_keys(row));
    return mean > 1.0 - step;
}

bool rounds_independently(Fill fill, ElementType o) {
    switch (fill) {
    case Fill::zeros:
    case Fill::integers:
    case Fill::ties:
    case Fill::weight_ties:
    case Fill::shifted:
        return false;
    case Fill::indexed:
        return element_bits(o) > 8;
    default:
        return true;
    }
}

bool channels_differ(Fill fill) {
    switch (fill) {
    case Fill::normal:
    case Fill::sharp:
    case Fill::rising:
    case Fill::heavy_tailed:
        return true;
    default:
        return false;
    }
}

bool BoundedO::has_rms() const {
    return rounds_independently(fill_, type());
}

/// Sign statistics need data without structure, and a P whose small values do not all become zero: e2m1 has three binades. The
/// rows of a head share the addition of `rising` to their logits; its rounding is the same in all of them, and where P is not rounded it is most of
/// their error.
bool BoundedO::has_mean() const {
    if (p_type_ == ElementType::fp4) return false;
    if (fill_ == Fill::rising) return rows_.numerics.u_p > 0.0;
    // Averages of [0, 1) lie within a step or two of 8 bits: the place of that step decides which way they are rounded.
    if (fill_ == Fill::uniform) return element_bits(type()) > 8;
    return fill_ == Fill::normal || fill_ == Fill::sharp;
}

/// A caller's weights may be equal in groups, each of which rounds once. In fp32 errors are those of scores, which the keys of a row share.
bool BoundedO::has_elements() const {
    return has_rms() && inputs_ != InputOrigin::caller &&
           (rows_.numerics.u_p > 0.0 || type() != ElementType::fp32);
}

bool BoundedO::has_rows() const {
    return has_elements() && channels_differ(fill_);
}

/// Under a sink logit no weight is 1, and where one key is all that counts its rounding is that of the whole row.
bool BoundedO::lines_may_round_once() const {
    for (std::int64_t row = 0; row < rows(); ++row)
        if (rows_.row_max(row) > rows_.score_max(row)) return true;
    return false;
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
