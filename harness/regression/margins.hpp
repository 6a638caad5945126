#pragma once

#include "harness/results/result.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fmha::regression {

/// A margin that worsened, or the margins of one gate that worsened together.
struct MarginChange {
    std::string family, subject;
    double before = 0.0, after = 0.0; ///< measured / allowed
    std::string explanation;          ///< their distance, in units of the spread that the same program shows
};

struct MarginVerdict {
    std::vector<MarginChange> worse;
    std::vector<std::pair<std::string, std::int64_t>> compared; ///< family → margins
    std::int64_t without_spread =
        0; ///< margins that could not be judged, because the program before was run with too few seeds
};

/// The margins of one run against those of several before, which have the same cases with different seeds. Logarithms of
/// margins are compared: a single one worsened when it lies above all that its case had before by more than `budget` and twice the
/// largest step by which, in any case of its gate, one seed lies above the others; the margins of one gate worsened together when
/// the median of their changes is above `budget` and eight standard errors. Below a tenth of the limit nothing is judged.
MarginVerdict compare_margins(std::span<const std::vector<harness::CaseResult>> before,
                              std::span<const harness::CaseResult> after, double budget);

} // namespace fmha::regression
