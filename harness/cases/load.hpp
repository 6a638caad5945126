#pragma once

#include "harness/cases/case.hpp"
#include "harness/cases/pair_table.hpp"
#include "harness/cases/relative_text.hpp"
#include "harness/cases/shape_matrix.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fmha::harness {

struct LoadOptions {
    std::filesystem::path root = "cases"; ///< where relative stems such as "fwd/tails" live
    Tier tier = Tier::smoke;              ///< highest tier taken; tiers are cumulative
    std::optional<ApiFamily> family{};    ///< only this one; absent = all
    /// Every case gets a seed of its own derived from this one and its name; without it the files' seeds
    /// apply.
    std::optional<std::uint64_t> run_seed{};
    /// Kernels that shape matrices expect to find; called only for these. Absent: every shape expects one.
    std::function<KernelDims(ApiFamily)> kernel_dims{};
    /// For files with values relative to the planned kernel; without it they are an InputError.
    TilePlanner planned_tile{};
};

/// Shard `index` of `count`, counted from 1.
struct Shard {
    std::uint64_t index = 1, count = 1;
};

/// Expands a user's names, in the order given: a case file ("fwd/tails", "fwd/tails.json", any path; "./NAME" and "../NAME" are of the
/// working folder and no other), a folder (all its case files in alphabetical order), an upstream shape matrix (*.yaml, *.yml), or the
/// printed name of one case, which gives exactly that case at every tier. No arguments = everything under
/// the root. A case that appears twice, a file without a case at the tier asked for by name, or anything
/// unreadable is an InputError.
std::vector<Case> load_cases(const std::vector<std::string>& arguments, const LoadOptions& options);

/// The pair tables of those named files (or of everything under the root) that have a `cover`, with their
/// stems.
std::vector<std::pair<std::string, PairTable>> pair_tables(const std::vector<std::string>& arguments,
                                                           const LoadOptions& options);

/// Shapes of the named shape matrices that `load_cases` leaves out, a sentence for each section of a file.
std::vector<std::string> left_out(const std::vector<std::string>& arguments, const LoadOptions& options);

/// One case by its printed name.
Case load_case(std::string_view name, const std::filesystem::path& root);

/// More than anybody has machines for; fmha merge joins as many.
inline constexpr std::uint64_t most_shards = 1'000'000;

/// "i/n" with 1 ≤ i ≤ n ≤ most_shards; InputError otherwise.
Shard parse_shard(std::string_view text);

/// The shard, from 1 to `count`, of each case, so that all shards take about equally long. `seconds` are known times by
/// names without seed; a case that is not among them takes as long as the median of its file, or of all.
std::vector<std::uint64_t> balanced_shards(const std::vector<Case>& cases, std::uint64_t count,
                                           const std::map<std::string, double>& seconds);

/// Every n-th case, so that a file's slow and quick cases spread over the shards.
std::vector<Case> take_shard(const std::vector<Case>& cases, Shard shard);

/// Seed of the case called `name` (its own seed stripped) in a run with `run_seed`; stable across builds and
/// machines.
std::uint64_t case_seed(std::uint64_t run_seed, std::string_view name);

} // namespace fmha::harness
