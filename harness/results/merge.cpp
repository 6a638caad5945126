#include "harness/results/merge.hpp"

#include "dispatcher/types/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace fmha::harness {
namespace {

/// One run of one shard, of which several files may tell.
struct ShardRun {
    std::string file;
    std::uint64_t cases = 0;
    std::map<std::string, std::vector<CaseResult>> results; ///< by case
};

/// More than anybody has machines for; a damaged file says anything.
constexpr std::uint64_t most_shards = 1'000'000;
/// So many of the missing or doubled cases are named.
constexpr std::size_t most_named = 20;

/// Two runs of one shard have nothing in common; their id tells them apart.
using ShardRuns = std::map<std::uint64_t, std::map<std::string, ShardRun>>;

/// "shards 2, 3 and 17 others of 20 are missing"; empty when none is.
std::string missing_shards(const ShardRuns& shards, std::uint64_t count) {
    std::vector<std::uint64_t> named;
    std::uint64_t missing = 0;
    for (std::uint64_t shard = 1; shard <= count; ++shard)
        if (!shards.contains(shard) && ++missing <= most_named) named.push_back(shard);
    if (missing == 0) return {};
    const std::string others =
        missing > most_named ? fmt::format(" and {} others", missing - most_named) : std::string();
    return fmt::format("{} {}{} of {} {} missing", missing == 1 ? "shard" : "shards", fmt::join(named, ", "),
                       others, count, missing == 1 ? "is" : "are");
}

void check_shards(const ShardRuns& shards, std::uint64_t count, std::vector<std::string>& problems) {
    if (const std::string missing = missing_shards(shards, count); !missing.empty())
        problems.push_back(missing);
    for (const auto& [shard, runs] : shards) {
        if (runs.size() > 1)
            problems.push_back(fmt::format("shard {} was run twice: {} and {}", shard,
                                           runs.begin()->second.file, runs.rbegin()->second.file));
        for (const auto& [id, run] : runs)
            if (run.results.size() < run.cases)
                problems.push_back(
                    fmt::format("{}: {} of the {} cases of shard {} are missing; the same command with "
                                "its journal finishes them",
                                run.file, run.cases - run.results.size(), run.cases, shard));
    }
}

} // namespace

Json whole_identity(const Json& of_shard) {
    constexpr std::array own{"shard", "shard_cases", "run", without_results_key};
    Json whole = Json::object();
    for (const auto& [key, value] : of_shard.items())
        if (std::find(own.begin(), own.end(), key) == own.end()) whole[key] = value;
    return whole;
}

std::string identity_differences(const Json& there, const Json& here) {
    const auto shown = [](const Json& object, const std::string& key) {
        if (!object.contains(key)) return std::string("nothing");
        const std::string text = object.at(key).dump();
        // Of digests the beginning says enough.
        return key.ends_with("_sha256") && text.size() > 14 ? text.substr(0, 13) + "…\"" : text;
    };
    std::vector<std::string> found;
    Json all = there;
    all.update(here);
    for (const auto& [key, unused] : all.items())
        if (!there.contains(key) || !here.contains(key) || there.at(key) != here.at(key))
            found.push_back(
                fmt::format("{} is {} there and {} here", key, shown(there, key), shown(here, key)));
    return fmt::format("{}", fmt::join(found, ", "));
}

namespace {

/// The member `key` of the identity of a part.
template <class T>
T member(const Part& part, const std::string& key, T otherwise) {
    try {
        return part.identity.value(key, std::move(otherwise));
    } catch (const JsonError& error) {
        throw InputError(fmt::format("{}: {} of its identity: {}", part.file, key, error.what()));
    }
}

/// What the report of the joined run takes from an identity is text, numbers of cases apart.
void check_identity(const Part& part) {
    for (const char* key : {"version", "target", "arch", "kernels", "machine", "compiler", "selection",
                            "target_name", "driver", "commit", "cases_sha256"})
        static_cast<void>(member(part, key, std::string()));
    static_cast<void>(member(part, "cases", std::uint64_t{0}));
    static_cast<void>(member(part, "catalogue", std::vector<std::string>()));
    if (part.identity.contains("catalogue") && !part.identity.contains("arch"))
        throw InputError(fmt::format(
            "{}: arch of its identity is missing; a run of a list is of an architecture", part.file));
}

/// A run tells of each kernel on a case once. Candidates that are not built may share the kernel that is not.
void check_each_once(const Part& part) {
    std::set<std::pair<std::string_view, std::string_view>> seen;
    for (const CaseResult& result : part.results)
        if (result.not_run_reason != NotRunReason::not_built &&
            !seen.emplace(result.name, result.kernel).second)
            throw InputError(fmt::format("{}: {} has two results{}", part.file, result.name,
                                         result.kernel.empty() ? "" : " of kernel " + result.kernel));
}

/// Of the whole run, without what tells no two runs apart.
Json shared_by_shards(const Json& of_shard) {
    const Json whole = whole_identity(of_shard);
    Json rest = Json::object();
    for (const auto& [key, value] : whole.items())
        if (key != objections_key) rest[key] = value;
    return rest;
}

/// Those of every part, each once.
std::vector<std::string> objections_of(const std::vector<Part>& parts) {
    std::vector<std::string> all;
    for (const Part& part : parts)
        for (std::string& one : member(part, objections_key, std::vector<std::string>()))
            if (std::ranges::find(all, one) == all.end()) all.push_back(std::move(one));
    return all;
}

/// What the files hold, by shard and run; all must be of the run of the first.
ShardRuns shard_runs(std::vector<Part>& parts) {
    ShardRuns shards;
    for (const Part& part : parts) check_identity(part);
    const Json whole = shared_by_shards(parts.front().identity);
    for (Part& part : parts) {
        const Json identity = shared_by_shards(part.identity);
        if (identity != whole)
            throw InputError(fmt::format("{}: belongs to another run than {}: {}", part.file,
                                         parts.front().file, identity_differences(whole, identity)));
        // Which of its cases which shard brought, the report of an incomplete merge does not say.
        if (!part.identity.contains("shard") && member(part, "shards", std::uint64_t{1}) > 1)
            throw InputError(fmt::format("{}: was joined from shards that are not the whole run; name the "
                                         "files of the shards instead",
                                         part.file));
        const auto id = member(part, "run", part.file);
        ShardRun& run = shards[member(part, "shard", std::uint64_t{1})][id];
        run.file = part.file;
        run.cases = member(part, "shard_cases", std::uint64_t{0});
        std::map<std::string, std::vector<CaseResult>> of_part;
        check_each_once(part);
        for (CaseResult& result : part.results) of_part[result.name].push_back(std::move(result));
        for (const std::string& name : member(part, without_results_key, std::vector<std::string>()))
            of_part.try_emplace(name);
        run.results.merge(of_part); // results that another file of this run has brought already stay
    }
    return shards;
}

/// Moves the results to `merged`, those of a case from the first shard that has it, and the names of cases without one; says which
/// stand in two shards, and returns the number of cases.
std::size_t move_results(ShardRuns& shards, Merged& merged) {
    std::map<std::string, std::pair<std::uint64_t, std::string>> owners; ///< shard and file of a case
    std::vector<std::string> doubled, without_results;
    for (auto& [shard, runs] : shards)
        for (auto& [id, run] : runs)
            for (auto& [name, results] : run.results) {
                const auto [owner, is_new] = owners.try_emplace(name, shard, run.file);
                if (is_new && results.empty())
                    without_results.push_back(name);
                else if (is_new)
                    std::move(results.begin(), results.end(), std::back_inserter(merged.results));
                else if (owner->second.first != shard) // of a shard that was run twice one sentence says it
                    doubled.push_back(
                        fmt::format("{} stands in {} and in {}", name, owner->second.second, run.file));
            }
    if (doubled.size() > most_named) {
        const std::size_t others = doubled.size() - most_named;
        doubled.resize(most_named);
        doubled.push_back(fmt::format("{} other cases stand in two shards", others));
    }
    merged.problems.insert(merged.problems.end(), doubled.begin(), doubled.end());
    if (!without_results.empty()) merged.identity[without_results_key] = without_results;
    return owners.size();
}

} // namespace

Merged merge(std::vector<Part> parts) {
    if (parts.empty())
        throw InputError("there is nothing to merge: name the reports, journals or stores of the shards");
    Merged merged;
    merged.identity = whole_identity(parts.front().identity);
    if (const auto objections = objections_of(parts); !objections.empty())
        merged.identity[objections_key] = objections;
    ShardRuns shards = shard_runs(parts);
    const auto count = member(parts.front(), "shards", std::uint64_t{1});
    if (count < 1 || count > most_shards)
        throw InputError(fmt::format("{}: says that its run has {} shards; allowed: 1 to {}",
                                     parts.front().file, count, most_shards));
    check_shards(shards, count, merged.problems);
    const std::size_t found = move_results(shards, merged);
    const auto cases = member(parts.front(), "cases", std::uint64_t{0});
    if (found != cases && merged.problems.empty())
        merged.problems.push_back(fmt::format("the run has {} cases, the files have {}", cases, found));
    std::stable_sort(merged.results.begin(), merged.results.end(),
                     [](const CaseResult& a, const CaseResult& b) { return a.name < b.name; });
    std::set<std::string> ids;
    for (const auto& [shard, runs] : shards)
        for (const auto& [id, run] : runs) ids.insert(id);
    merged.runs.assign(ids.begin(), ids.end());
    return merged;
}

} // namespace fmha::harness
