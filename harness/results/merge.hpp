#pragma once

#include "dispatcher/types/json.hpp"
#include "harness/results/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace fmha::harness {

/// The content of one file of one shard of a run.
struct Part {
    std::string file;
    Json identity; ///< of the shard: that of the whole run and the members `shard`, `shard_cases` and `run`
    std::vector<CaseResult> results;
};

/// Shards, joined.
struct Merged {
    Json identity; ///< of the whole run
    std::vector<CaseResult> results;
    std::vector<std::string> problems; ///< why this is not the whole run, a sentence each; empty: it is
    std::vector<std::string> runs;     ///< ids of the shards' runs, sorted
};

/// The member of an identity with what makes a run red beside its results, a sentence each. Some follow from the day, so they tell no two
/// runs apart.
inline constexpr const char* objections_key = "waivers_red";

/// The member of a shard's identity with the names of cases that it looked at and that have no result, because none of the kernels that
/// accept them was asked for. They are not missing.
inline constexpr const char* without_results_key = "cases_without_results";

/// Joins parts of one run: several files of one shard (its journal and its report) count once. Shards and cases that are missing, and
/// cases that were run twice, are problems. Throws InputError when there is no part, or when two are of different runs: the members
/// of their identities that differ.
Merged merge(std::vector<Part> parts);

/// The identity of the whole run.
Json whole_identity(const Json& of_shard);

/// "arch is "gfx942" there and "gfx950" here" for each member that differs.
std::string identity_differences(const Json& there, const Json& here);

} // namespace fmha::harness
