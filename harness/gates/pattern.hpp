#pragma once

#include "harness/gates/axis.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace fmha::harness {

/// A wrong element, or a wrong row when `column` is −1, with the facts that can explain it. `row` counts on the axis of the context.
struct WrongElement {
    std::int64_t b = 0, h = 0, row = 0, column = -1;
    std::int64_t length = 0;    ///< of the entry on the axis of the rows
    std::int64_t partners = -1; ///< of the row: keys that a query sees, queries that see a key; −1: not known
    double ratio = 0.0;         ///< distance in units of the limit; ∞ where an exact gate rejects it
};

/// The shape of the problem, for the classification.
struct PatternContext {
    Axis rows = Axis::query, column_axis = Axis::v_channel;
    std::int64_t batch = 0, heads = 0, group_size = 1, columns = 0;
    std::int64_t checked_rows = 0;
    std::int64_t median_partners = 0; ///< of the checked rows; 0: not known
};

/// One line about the shape of the set of wrong elements and its usual cause: last rows
/// (query tail), a stretch of rows (mask edge), columns beyond a multiple (value dimension), some heads (head map), rows with many
/// keys (accumulation), whole tiles (schedule), none of these and little beyond the limit (precision); of a single row its place. What few
/// elements share by chance is not told. Empty for no wrong element.
std::string classify(const std::vector<WrongElement>& wrong, const PatternContext& context);

} // namespace fmha::harness
