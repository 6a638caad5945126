#include "tests/harness/gate_findings.hpp"

#include <fmt/format.h>

#include <cmath>

namespace fmha::cli::test {

using harness::CaseResult;
using harness::Outcome;
using store::Recording;
using store::RunRecord;

namespace {

double noise(std::mt19937& random, double spread) {
    return std::exp(spread * std::normal_distribution()(random));
}

CaseResult case_of(ApiFamily family, int n, std::mt19937& random) {
    CaseResult r;
    r.name = fmt::format("{}/case{}@1", to_string(family), n);
    r.family = family;
    r.kernel = fmt::format("{}_gfx950_kernel{}", to_string(family), n % 5);
    r.outcome = Outcome::passed;
    r.gates = {{"G1", "o", true, true, 0.4 * noise(random, 0.1)},
               {"G2", "o", true, true, 0.7 * noise(random, 0.02)},
               {"G5.9", "o", true, true, 0.0}};
    return r;
}

} // namespace

std::vector<CaseResult> some_cases(std::mt19937& random, double worse) {
    std::vector<CaseResult> results;
    for (const ApiFamily family : {ApiFamily::fwd, ApiFamily::bwd})
        for (int n = 0; n < 30; ++n) {
            results.push_back(case_of(family, n, random));
            results.back().gates[1].ratio *= worse;
        }
    return results;
}

store::TimeRecord time_of(const std::string& kernel, int round, double median, double low, double best) {
    store::TimeRecord time;
    time.name = "fwd/models@1";
    time.kernel = kernel;
    time.round = round;
    time.outcome = harness::BenchOutcome::measured;
    time.median = median;
    time.low = low;
    time.high = 1.1 * median;
    time.best = best;
    time.samples = 100;
    return time;
}

std::vector<store::TimeRecord> quiet_bench(std::mt19937& random, double slower) {
    std::vector<store::TimeRecord> times;
    for (int kernel = 0; kernel < 2; ++kernel)
        for (int round = 1; round <= 3; ++round) {
            const double time = 1e-3 * (kernel == 0 ? slower : 1.0) * noise(random, 0.005);
            times.push_back(
                time_of(fmt::format("fwd_gfx950_timed{}", kernel), round, time * 1.02, time * 1.01, time));
        }
    return times;
}

Findings usual(unsigned seed) {
    std::mt19937 random(seed);
    Findings all;
    all.results = some_cases(random);
    for (int run = 0; run < 3; ++run) all.benches.push_back(quiet_bench(random, 1.0));
    all.resources = {{"fwd_gfx942_a", "gfx942", "clang", 128}, {"bwd_gfx942_b", "gfx942", "clang", 256}};
    all.counts = {{"house gfx950 fwd", "kernels", 5600}, {"house gfx950", "facts", 393}};
    return all;
}

RunRecord run_of(store::RunKind kind, const std::string& commit) {
    static int number = 0;
    RunRecord run;
    run.id = fmt::format("{:032}", ++number);
    run.kind = kind;
    run.commit = commit;
    run.target = "host";
    run.arch = "gfx950";
    run.machine = "a machine";
    run.started = fmt::format("2026-01-01T00:{:02}:{:02}Z", number / 60 % 60, number % 60);
    return run;
}

void keep(const std::string& file, const std::string& commit, const Findings& findings, bool with_seeds) {
    std::mt19937 random(99);
    for (int seed = with_seeds ? 1 : seeds; seed <= seeds; ++seed) {
        Recording verify(file, run_of(store::RunKind::verify, commit));
        const auto results = seed < seeds ? some_cases(random) : findings.results;
        for (const CaseResult& result : results) verify.add(result.name, {&result, 1});
        verify.finish(1.0, "green");
    }
    for (const auto& times : findings.benches) {
        Recording bench(file, run_of(store::RunKind::bench, commit));
        for (const auto& time : times) bench.add(time);
        bench.finish(1.0, "green");
    }
    Recording build(file, run_of(store::RunKind::build, commit));
    build.add(findings.resources);
    build.finish(1.0, "green");
    Recording parity(file, run_of(store::RunKind::parity, commit));
    parity.add(findings.counts);
    parity.finish(1.0, "green");
}

} // namespace fmha::cli::test
