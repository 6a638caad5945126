#pragma once

#include "harness/results/result.hpp"
#include "harness/store/store.hpp"

#include <random>
#include <string>
#include <vector>

/// Made-up programs for `fmha gate`, and a store that knows them.
namespace fmha::cli::test {

/// What one program found: a change of a member is a change of the program.
struct Findings {
    std::vector<harness::CaseResult> results;
    std::vector<std::vector<store::TimeRecord>> benches;
    std::vector<store::ResourceRecord> resources;
    std::vector<store::CountRecord> counts;
};

/// Of a program, and so the number of its verify runs.
constexpr int seeds = 4;

/// Thirty green cases of each of two families. `worse`: factor of the G2 of each.
std::vector<harness::CaseResult> some_cases(std::mt19937& random, double worse = 1.0);

store::TimeRecord time_of(const std::string& kernel, int round, double median, double low, double best);

/// Three rounds of two kernels on a machine with little to do.
std::vector<store::TimeRecord> quiet_bench(std::mt19937& random, double slower);

Findings usual(unsigned seed = 1);

store::RunRecord run_of(store::RunKind kind, const std::string& commit);

/// Verify runs with other seeds first, so that the last one is that of `findings`.
void keep(const std::string& file, const std::string& commit, const Findings& findings,
          bool with_seeds = true);

} // namespace fmha::cli::test
