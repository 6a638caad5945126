#include "harness/regression/margins.hpp"

#include "harness/regression/median.hpp"
#include "harness/results/case_seed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace fmha::regression {
namespace {

using harness::CaseResult;

/// Family, gate and tensor: together they have one limit.
using GateKey = std::tuple<std::string, std::string, std::string>;
/// Case without seed, kernel.
using ResultKey = std::pair<std::string, std::string>;
using Logs = std::map<GateKey, std::map<ResultKey, std::vector<double>>>;

constexpr double floor_of_interest = 0.10; ///< share of the limit
constexpr std::size_t fewest_seeds = 3, fewest_of_a_gate = 20;

/// Standard deviation of normal values from their median deviation, which outliers leave alone.
double robust_spread(const std::vector<double>& values) {
    const double centre = median(values);
    std::vector<double> deviations;
    for (const double value : values) deviations.push_back(std::abs(value - centre));
    constexpr double of_normal = 1.4826;
    return of_normal * median(std::move(deviations));
}

/// Of green results: red ones are told elsewhere.
void gather(std::span<const CaseResult> results, Logs& into) {
    for (const CaseResult& result : results) {
        if (result.outcome != harness::Outcome::passed) continue;
        const ResultKey key{harness::without_seed(result.name), result.kernel};
        for (const auto& gate : result.gates)
            if (gate.required && std::isfinite(gate.ratio))
                into[{std::string(to_string(result.family)), gate.gate, gate.tensor}][key].push_back(
                    std::log(std::max(gate.ratio, floor_of_interest)));
    }
}

/// How far the largest of several values lies above the others: by so much a new seed may exceed all earlier ones.
double excess(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.back() - values[values.size() - 2];
}

/// The values of one program's seeds at a gate, or at all gates of a family.
struct Excesses {
    double largest = 0.0;
    std::size_t cases = 0;

    void add(const std::map<ResultKey, std::vector<double>>& logs) {
        for (const auto& [key, values] : logs) {
            if (values.size() < fewest_seeds) continue;
            ++cases;
            largest = std::max(largest, excess(values));
        }
    }
};

/// The margins of one gate over all cases.
class GateComparison {
  public:
    GateComparison(const GateKey& gate, const Excesses& seen, double budget, MarginVerdict& into)
        : gate_(gate), seen_(seen), budget_(std::log1p(budget)), verdict_(into) {}

    /// False when the seeds of before do not tell enough.
    bool judge(const ResultKey& key, const std::vector<double>& before, const std::vector<double>& after) {
        if (seen_.cases == 0) return false;
        const double now = median(after), was = *std::max_element(before.begin(), before.end());
        // The largest excess of some draws is exceeded by the next draws now and then, but not doubled.
        if (now - was > budget_ + 2.0 * seen_.largest)
            report(key.first, was, now,
                   fmt::format(
                       "above all {} seeds before; seeds of this gate exceed one another by up to {:.0f} %",
                       before.size(), percent(seen_.largest)));
        if (now > std::log(floor_of_interest) || was > std::log(floor_of_interest))
            changes_.push_back(now - median(before));
        befores_.push_back(median(before));
        return true;
    }

    /// All together.
    void conclude() {
        if (changes_.size() < fewest_of_a_gate) return;
        const double change = median(changes_);
        constexpr double errors = 8.0, of_a_median = 1.2533;
        const double error =
            of_a_median * robust_spread(changes_) / std::sqrt(static_cast<double>(changes_.size()));
        if (change <= budget_ + errors * error) return;
        const double was = median(befores_);
        report(fmt::format("{} margins", changes_.size()), was, was + change,
               fmt::format("their median, ± {:.1f} %", percent(error)));
    }

  private:
    static double percent(double log_change) {
        constexpr double hundred = 100.0;
        return hundred * std::expm1(log_change);
    }
    void report(const std::string& subject, double before, double after, std::string explanation) {
        const auto& [family, gate, tensor] = gate_;
        verdict_.worse.push_back({family,
                                  fmt::format("{} {}{}{}", subject, gate, tensor.empty() ? "" : ":", tensor),
                                  std::exp(before), std::exp(after), std::move(explanation)});
    }

    GateKey gate_;
    Excesses seen_;
    double budget_;
    MarginVerdict& verdict_;
    std::vector<double> changes_, befores_;
};

} // namespace

MarginVerdict compare_margins(std::span<const std::vector<CaseResult>> before,
                              std::span<const CaseResult> after, double budget) {
    Logs old_logs, new_logs;
    for (const auto& results : before) gather(results, old_logs);
    gather(after, new_logs);
    MarginVerdict verdict;
    std::map<std::string, std::int64_t> compared;
    std::map<std::string, Excesses> of_family;
    for (const auto& [gate, logs] : old_logs) of_family[std::get<0>(gate)].add(logs);
    for (const auto& [gate, now] : new_logs) {
        const auto was = old_logs.find(gate);
        if (was == old_logs.end()) continue;
        Excesses seen;
        seen.add(was->second);
        // A gate of few cases shows too little; then all gates of its family speak for it.
        GateComparison comparison(gate, seen.cases < fewest_of_a_gate ? of_family[std::get<0>(gate)] : seen,
                                  budget, verdict);
        for (const auto& [key, logs] : now)
            if (const auto old = was->second.find(key); old != was->second.end()) {
                if (comparison.judge(key, old->second, logs))
                    ++compared[std::get<0>(gate)];
                else
                    ++verdict.without_spread;
            }
        comparison.conclude();
    }
    verdict.compared.assign(compared.begin(), compared.end());
    return verdict;
}

} // namespace fmha::regression
