#include "harness/cases/load.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace fmha::harness {
namespace {

std::string without_seed(const std::string& name) {
    return name.substr(0, name.rfind('@'));
}

double median(std::vector<double> values) {
    if (values.empty()) return 1.0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Seconds of each case, guessed where they are not known.
std::vector<double> costs_of(const std::vector<Case>& cases, const std::map<std::string, double>& seconds) {
    const auto file_of = [](const Case& c) { return c.id.substr(0, c.id.find('[')); };
    std::map<std::string, std::vector<double>> known;
    std::vector<double> all;
    for (const Case& c : cases)
        if (const auto time = seconds.find(without_seed(c.id)); time != seconds.end()) {
            known[file_of(c)].push_back(time->second);
            all.push_back(time->second);
        }
    std::map<std::string, double> guesses;
    for (const auto& [file, times] : known) guesses[file] = median(times);
    const double guess = median(std::move(all));
    std::vector<double> costs;
    for (const Case& c : cases) {
        const auto time = seconds.find(without_seed(c.id));
        const auto of_file = guesses.find(file_of(c));
        costs.push_back(time != seconds.end()      ? time->second
                        : of_file != guesses.end() ? of_file->second
                                                   : guess);
    }
    return costs;
}

} // namespace

std::vector<std::uint64_t> balanced_shards(const std::vector<Case>& cases, std::uint64_t count,
                                           const std::map<std::string, double>& seconds) {
    const std::vector<double> costs = costs_of(cases, seconds);
    std::vector<std::size_t> order(cases.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    // The longest first, each to the shard that has least: within 4/3 of the best (Graham, 1969).
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
    using Load = std::pair<double, std::uint64_t>; // and the shard that has it
    std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
    for (std::uint64_t shard = 1; shard <= count; ++shard) loads.emplace(0.0, shard);
    std::vector<std::uint64_t> shards(cases.size());
    for (const std::size_t i : order) {
        const auto [load, shard] = loads.top();
        loads.pop();
        loads.emplace(load + costs[i], shard);
        shards[i] = shard;
    }
    return shards;
}

} // namespace fmha::harness
