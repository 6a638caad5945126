#pragma once

#include "harness/cases/case.hpp"
#include "harness/data/random.hpp"

#include <cstdint>

namespace fmha::harness {

/// Partial results that a case of the combine stage brings: those of the splits of a row. A value depends on the seed and
/// its logical position only.
class PartialFill {
  public:
    explicit PartialFill(const Case& c) : case_(c), lse_(c.seed, 6), o_(c.seed, 7) {}

    /// LSE of a split of row i of an entry; −∞ for a split that saw no key (S-2).
    double lse(std::int64_t b, std::int64_t h, std::int64_t split, std::int64_t i) const;
    /// O of the same, normal(0,1). Nobody may read that of a split without keys (S-4).
    double o(std::int64_t b, std::int64_t h, std::int64_t split, std::int64_t i, std::int64_t channel) const;
    bool empty(std::int64_t b, std::int64_t h, std::int64_t split, std::int64_t i) const;

  private:
    Random of_split(const Random& stream, std::int64_t b, std::int64_t h, std::int64_t split,
                    std::int64_t i) const;

    const Case& case_;
    Random lse_, o_;
};

} // namespace fmha::harness
