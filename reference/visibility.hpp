#pragma once

#include "reference/attention_args.hpp"
#include "reference/rows.hpp"

#include <cstdint>

/// The keys that a row sees, without its scores, for exact gates on rows that no oracle computes.
namespace fmha::reference {

/// The keys that the mask and its sink tokens show to one row (M-1, M-7, K-1), of several splits those of `args.split` (S-1):
/// [sink_begin, sink_end) and [first, end), ascending. Of all keys sink_begin is 0.
struct KeyRanges {
    std::int64_t sink_begin = 0, sink_end = 0, first = 0, end = 0;

    std::int64_t sinks() const { return sink_end - sink_begin; }
    std::int64_t count() const { return sinks() + end - first; }
    bool contain(std::int64_t j) const {
        return (sink_begin <= j && j < sink_end) || (first <= j && j < end);
    }
};
KeyRanges key_ranges(const AttentionArgs& args, const RowId& row);

/// First and last key with a score above −∞ (E-2): equal for a row of one key, −1 for a row without one. An elementwise bias
/// is read from both ends up to its first finite value.
struct EndKeys {
    std::int64_t first = -1, last = -1;

    bool none() const { return first < 0; }
    bool single() const { return first >= 0 && first == last; }
};
EndKeys end_keys(const AttentionArgs& args, const RowId& row);

/// Sink logit of head h, −∞ without one (K-5).
double sink_logit_of(const FwdArgs& args, std::int64_t h);

} // namespace fmha::reference
