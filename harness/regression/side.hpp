#pragma once

#include "harness/store/store.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

/// Two sets of runs, compared: the subjects that were better before.
namespace fmha::regression {

/// The runs of one series (RunRecord::selection) by one program.
struct Series {
    std::string name;                       ///< "verify host gfx950 all tier=smoke …"
    store::RunRecord run;                   ///< the last one
    std::vector<store::RunRecord> of_bench; ///< at most `bench_runs`, oldest first; their times follow
    std::vector<std::vector<store::TimeRecord>> times;
    /// Results of all runs by this program, the last one's at the end: those before it have the same cases with other seeds.
    std::vector<std::vector<harness::CaseResult>> results;
    std::vector<store::ResourceRecord> resources;
    std::vector<store::CountRecord> counts;
};

/// Runs whose times are compared, a side.
inline constexpr std::size_t bench_runs = 3;

struct Side {
    std::string label; ///< for people: commits and dates
    std::vector<Series> series;
    std::vector<std::string> notes; ///< runs that are left out, a sentence each
    /// When the last run of a series began, where the store's newest program made that run and it has not finished (runs of shards do
    /// not count). `series` may have an older run of the same series.
    std::map<std::string, std::string> unfinished;
};

/// The name of a series, or of another subject, for people: without members that choose nothing.
std::string shown(std::string_view name);

/// The label of a side for people.
inline std::string shown_side(const std::string& label) {
    return label.empty() ? "nothing" : label;
}

/// The last finished run of each series with the other runs of its program. Shards are left out until they are merged. A note names
/// the series that the store's newest program has not run.
Side newest(const store::Store& store);

/// The runs before those of `newest`: of the last program that is another one, else the run before.
Side previous(const store::Store& store);

/// The last runs of the commit that begins with `commit`. Throws InputError when the store has none.
Side of_commit(const store::Store& store, const std::string& commit);

} // namespace fmha::regression
