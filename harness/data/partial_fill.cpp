#include "harness/data/partial_fill.hpp"

#include "harness/cases/value_order.hpp"

#include <limits>

namespace fmha::harness {

Random PartialFill::of_split(const Random& stream, std::int64_t b, std::int64_t h, std::int64_t split,
                             std::int64_t i) const {
    const std::int64_t head = plain_head(case_, h, case_.nhead_q) * case_.split.num_splits + split;
    return stream.row(static_cast<std::uint64_t>(plain_entry(case_, b)), static_cast<std::uint64_t>(head),
                      static_cast<std::uint64_t>(i));
}

bool PartialFill::empty(std::int64_t b, std::int64_t h, std::int64_t split, std::int64_t i) const {
    switch (case_.split.partial_lse) {
    case PartialLse::all_empty:
        return true;
    case PartialLse::last_only:
        return split + 1 < case_.split.num_splits;
    case PartialLse::some_empty: {
        // One row in five sees no key at all; in the others two splits in five are empty.
        const bool row_empty = lse_.row(static_cast<std::uint64_t>(plain_entry(case_, b)),
                                        static_cast<std::uint64_t>(plain_head(case_, h, case_.nhead_q)),
                                        static_cast<std::uint64_t>(i))
                                   .integer(0, 0, 4) == 0;
        return row_empty || of_split(lse_, b, h, split, i).integer(1, 0, 4) < 2;
    }
    default:
        return false;
    }
}

double PartialFill::lse(std::int64_t b, std::int64_t h, std::int64_t split, std::int64_t i) const {
    if (empty(b, h, split, i)) return -std::numeric_limits<double>::infinity();
    const double number = of_split(lse_, b, h, split, i).normal(0);
    switch (case_.split.partial_lse) {
    case PartialLse::equal:
        return 0.75;
    case PartialLse::wide:
        return 300.0 * number;
    case PartialLse::far:
        return (i % 2 == 0 ? 1500.0 : -1500.0) + 2.0 * number;
    default:
        return 2.0 * number;
    }
}

double PartialFill::o(std::int64_t b, std::int64_t h, std::int64_t split, std::int64_t i,
                      std::int64_t channel) const {
    return of_split(o_, b, h, split, i).normal(static_cast<std::uint64_t>(channel));
}

} // namespace fmha::harness
