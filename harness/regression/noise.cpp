#include "harness/regression/noise.hpp"

#include "harness/regression/median.hpp"
#include <algorithm>
#include <array>
#include <cmath>

namespace fmha::regression {
namespace {

/// Logarithms of a run's times: median of medians, median of lower quartiles, shortest.
using Block = std::array<double, 3>;
constexpr std::size_t shortest = 2;

double log_of(double seconds) {
    // Below the resolution of a clock there is nothing to compare.
    constexpr double instant = 1e-9;
    return std::log(std::max(seconds, instant));
}

Block block_of(const Rounds& rounds) {
    std::vector<double> medians, lows, bests;
    for (const auto& round : rounds) {
        medians.push_back(log_of(round.median));
        lows.push_back(log_of(round.low));
        bests.push_back(log_of(round.best));
    }
    return {median(medians), median(lows), *std::min_element(bests.begin(), bests.end())};
}

/// How far launches lie above the shortest of their round, as a logarithm, typically: three in four lie above the lower quartile.
double unrest(std::span<const Rounds> runs) {
    std::vector<double> of_runs;
    for (const Rounds& rounds : runs) {
        std::vector<double> of_rounds;
        for (const auto& round : rounds) of_rounds.push_back(log_of(round.low) - log_of(round.best));
        of_runs.push_back(median(of_rounds));
    }
    return median(of_runs);
}

std::vector<Block> blocks_of(std::span<const Rounds> runs) {
    std::vector<Block> blocks;
    for (const Rounds& rounds : runs) blocks.push_back(block_of(rounds));
    return blocks;
}

/// Standard deviation of three values: from their range, or from the two nearest ones, which a single outlier leaves alone.
double spread(const std::vector<Block>& blocks, std::size_t what, bool robust) {
    std::array<double, 3> x{blocks[0][what], blocks[1][what], blocks[2][what]};
    std::sort(x.begin(), x.end());
    // Mean range of three normal values, and the factor that makes a median deviation a standard deviation.
    constexpr double range_of_three = 1.693, deviation = 1.4826;
    return robust ? deviation * std::min(x[1] - x[0], x[2] - x[1]) : (x[2] - x[0]) / range_of_three;
}

double lowest(const std::vector<Block>& blocks) {
    double low = blocks.front()[shortest];
    for (const Block& block : blocks) low = std::min(low, block[shortest]);
    return low;
}

} // namespace

TimeChange compare_times(std::span<const Rounds> before, std::span<const Rounds> after, double budget,
                         bool interleaved) {
    const std::vector<Block> old_runs = blocks_of(before), new_runs = blocks_of(after);
    constexpr double deviations = 3.0;
    double noise = unrest(after);
    for (std::size_t what = 0; what < Block{}.size(); ++what)
        for (const auto* blocks : {&old_runs, &new_runs})
            noise = std::max(noise, deviations * spread(*blocks, what, interleaved));
    const double limit = std::max(std::log1p(budget), noise);
    TimeChange change;
    change.noise = std::expm1(noise);
    std::vector<double> ratios;
    double slowest_before = old_runs.front()[shortest];
    for (const Block& block : old_runs) slowest_before = std::max(slowest_before, block[shortest]);
    int above = 0;
    for (std::size_t pair = 0; pair < old_runs.size(); ++pair) {
        double least = new_runs[pair][0] - old_runs[pair][0];
        for (std::size_t what = 1; what < Block{}.size(); ++what)
            least = std::min(least, new_runs[pair][what] - old_runs[pair][what]);
        ratios.push_back(least);
        change.seen += least > limit ? 1 : 0;
        above += new_runs[pair][shortest] > slowest_before ? 1 : 0;
    }
    change.by = std::expm1(median(ratios));
    change.slower = change.seen >= 2 && above >= 2 && lowest(new_runs) - lowest(old_runs) > 0.5 * limit;
    return change;
}

} // namespace fmha::regression
