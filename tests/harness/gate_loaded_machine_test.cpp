// `fmha gate` on a machine that is busy with other work: a hundred reruns of the same thing raise no alarm, and a large slowdown is seen.

#include "harness/regression/compare.hpp"
#include "harness/regression/noise.hpp"
#include "tests/harness/gate_findings.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <utility>
#include <vector>

namespace fmha::cli {
namespace {

using test::Findings;
using test::run_of;
using test::seeds;
using test::some_cases;
using test::time_of;
using test::usual;

/// Rounds that were measured on a machine with a load of nine on two threads, one series a kernel.
std::vector<std::vector<store::TimeRecord>> loaded_machine() {
    std::ifstream file(FMHA_TEST_DATA "/loaded_machine.txt");
    std::string head;
    std::getline(file, head);
    std::vector<std::vector<store::TimeRecord>> series;
    double median = 0.0, low = 0.0, best = 0.0;
    for (std::size_t kernel = 0; file >> kernel >> median >> low >> best;) {
        series.resize(std::max(series.size(), kernel + 1));
        series[kernel].push_back(time_of(fmt::format("fwd_gfx950_timed{}", kernel), 1, median, low, best));
    }
    return series;
}

// The runs of both sides took turns, as harness/scale/README.md shows; they begin anywhere in the record of the machine.
TEST(Gate, AHundredRerunsOnALoadedMachineRaiseNoAlarm) {
    const auto machine = loaded_machine();
    ASSERT_EQ(machine.size(), 4U);
    std::mt19937 random(5);
    int noisy = 0;
    for (int rerun = 0; rerun < 100; ++rerun) {
        const Scratch folder;
        Findings before = usual(1000U + static_cast<unsigned>(rerun)),
                 after = usual(2000U + static_cast<unsigned>(rerun));
        before.benches.assign(3, {});
        after.benches.assign(3, {});
        for (const auto& series : machine) {
            std::size_t at = std::uniform_int_distribution<std::size_t>(0, series.size() - 18)(random);
            for (std::size_t run = 0; run < 3; ++run)
                for (Findings* side : {&before, &after})
                    for (int round = 1; round <= 3; ++round) {
                        side->benches[run].push_back(series[at++]);
                        side->benches[run].back().round = round;
                    }
        }
        regression::Side old_side, new_side;
        for (auto& [side, findings] : {std::pair{&old_side, &before}, {&new_side, &after}}) {
            regression::Series verify, bench;
            verify.name = "verify";
            std::mt19937 other(random());
            for (int seed = 0; seed < seeds; ++seed) verify.results.push_back(some_cases(other));
            bench.name = "bench";
            bench.times = findings->benches;
            for (int run = 0; run < 3; ++run) {
                bench.of_bench.push_back(run_of(store::RunKind::bench, "aaaa"));
                bench.of_bench.back().started = fmt::format("{}", 2 * run + (side == &new_side ? 1 : 0));
            }
            side->series = {verify, bench};
        }
        const auto verdict = regression::compare(old_side, new_side, {}, {});
        EXPECT_TRUE(verdict.green()) << to_text(verdict);
        EXPECT_EQ(verdict.families.back().times, 4);
        noisy += verdict.notes.empty() ? 0 : 1;
    }
    EXPECT_GT(noisy, 90) << "on such a machine a slowdown of 10 % cannot be seen, and that is said";
}

/// Three runs of three rounds each.
std::vector<regression::Rounds> three_runs(double median, double low, double best) {
    return std::vector(3, regression::Rounds(3, time_of("fwd_gfx950_timed", 1, median, low, best)));
}

// As one of a hundred reruns was: in each launch of the later side two threads waited for processors that others had.
TEST(TimeChange, IsNotClaimedWhereOtherWorkDisturbsMostLaunches) {
    const auto quiet = three_runs(0.307e-3, 0.303e-3, 0.300e-3);
    const auto disturbed = three_runs(5.93e-3, 2.1e-3, 0.54e-3);
    EXPECT_FALSE(regression::compare_times(quiet, disturbed, 0.05, true).slower);
    EXPECT_TRUE(regression::compare_times(quiet, three_runs(0.55e-3, 0.54e-3, 0.53e-3), 0.05, true).slower)
        << "a slowdown of the same size that all launches have";
}

TEST(TimeChange, IsSeenOnThatMachineWhenItIsLarge) {
    const auto machine = loaded_machine();
    int seen = 0, all = 0;
    for (const auto& series : machine)
        for (std::size_t at = 0; at + 18 <= series.size(); at += 6) {
            std::vector<regression::Rounds> before, after;
            for (std::size_t run = 0; run < 6; ++run) {
                regression::Rounds rounds(series.begin() + static_cast<std::ptrdiff_t>(at + 3 * run),
                                          series.begin() + static_cast<std::ptrdiff_t>(at + 3 * run + 3));
                if (run % 2 == 1)
                    for (auto& round : rounds) {
                        round.median *= 8.0;
                        round.low *= 8.0;
                        round.best *= 8.0;
                    }
                (run % 2 == 0 ? before : after).push_back(std::move(rounds));
            }
            ++all;
            seen += regression::compare_times(before, after, 0.05, true).slower ? 1 : 0;
        }
    EXPECT_GT(seen, all / 2);
}

} // namespace
} // namespace fmha::cli
