#pragma once

#include "harness/store/record.hpp"

#include <span>
#include <vector>

namespace fmha::regression {

/// The times of one kernel on one case in the rounds of one run.
using Rounds = std::vector<store::TimeRecord>;

/// The findings of three pairs of runs about one kernel.
struct TimeChange {
    double by = 0.0; ///< typical ratio after / before - 1
    double noise =
        0.0; ///< the difference of these runs among themselves, as such a ratio: less than this is not seen
    int seen = 0; ///< pairs in which it is slower by more than noise and budget
    bool slower = false;
};

/// Judges three runs against three (the n-th of a side makes a pair with the n-th of the other). Other work on a machine only ever
/// adds time, for milliseconds or for minutes, so one number is not enough. A pair shows a slowdown when the median of the rounds'
/// medians, the median of their lower quartiles and the shortest time of all agree that it is longer by more than `budget` and by
/// more than noise. Noise is three times the robust spread of the three runs of either side, and at least as much as launches of the later side
/// differ within a round: where other work disturbs most of them, it disturbs the shortest as well. A side is slower when three
/// things hold: two pairs show it, two of its runs are above all runs of the other, and its shortest time shows at least half of the
/// change. `interleaved`: the runs of both sides took turns, so that a slow hour met both; else the whole range of a side is its
/// spread and not that of its two nearest runs.
TimeChange compare_times(std::span<const Rounds> before, std::span<const Rounds> after, double budget,
                         bool interleaved);

} // namespace fmha::regression
