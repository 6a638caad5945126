#include "harness/fuzz/fuzz.hpp"

#include "dispatcher/types/error.hpp"
#include "harness/cases/check_form.hpp"
#include "harness/cases/load.hpp"
#include "harness/fuzz/random_case.hpp"
#include "harness/results/result_json.hpp"
#include "harness/run/worker_pool.hpp"
#include "harness/shrink/red_mark.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <numeric>

namespace fmha::harness {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t sum(const std::map<std::string, std::int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0},
                           [](std::int64_t all, const auto& entry) { return all + entry.second; });
}

/// A case that contradicts itself, whose data cannot be made, or that no kernel of the name asked for takes, as a result: it was drawn,
/// not written by a person. `why`: in a few words.
CaseResult undone(const Case& c, const std::string& why, const std::string& sentence) {
    CaseResult result;
    result.name = c.id;
    result.family = c.family;
    result.outcome = Outcome::refused_unexpectedly;
    result.refused_by = RefusedBy::problem;
    result.refusal = why;
    result.message = sentence;
    return result;
}

std::vector<CaseResult> results_of(const Case& c, const KernelSource& source, const CaseRunOptions& options) {
    try {
        check_form(c, c.id);
        std::vector<CaseResult> results = run_case(c, source, options);
        if (results.empty()) {
            const std::string nobody =
                fmt::format("no accepting kernel has a name like {}", options.kernel_filter);
            results.push_back(undone(c, nobody, nobody));
        }
        return results;
    } catch (const InputError& error) {
        return {undone(c, "no case", std::string("no case: ") + error.what())};
    }
}

/// A problem has one result, also where its process died: of several kernels' the first red one, else the first.
CaseResult result_of(const TaskEnd& end, const FuzzOptions& options, std::size_t n) {
    try {
        if (end.kind == TaskEnd::Kind::done) {
            const std::vector<CaseResult> results = unpack(end.answer);
            const auto red = std::ranges::find_if(
                results, [](const CaseResult& result) { return !is_green(result.outcome); });
            return red == results.end() ? results.at(0) : *red;
        }
        return lost_result(fuzz_case(options, n), options.of_case, end);
    } catch (const InputError& error) {
        return lost_result(fuzz_case(options, n), options.of_case, {TaskEnd::Kind::crashed, error.what()});
    }
}

void count(const CaseResult& result, FuzzCounts& counts) {
    ++counts.generated;
    if (result.outcome == Outcome::refused_unexpectedly || result.outcome == Outcome::type_absent) {
        ++counts.refused[refusal_reason(result)];
        return;
    }
    if (result.outcome == Outcome::not_run) {
        ++counts.not_run[std::string(to_string(result.not_run_reason))];
        return;
    }
    ++counts.executed;
    ++counts.executed_of[std::string(to_string(result.family))];
    counts.red += is_green(result.outcome) ? 0 : 1;
    if (!result.kernel.empty()) counts.kernels.insert(result.kernel);
}

} // namespace

std::int64_t FuzzCounts::all_refused() const {
    return sum(refused);
}

std::int64_t FuzzCounts::all_not_run() const {
    return sum(not_run);
}

Case fuzz_case(const FuzzOptions& options, std::size_t n) {
    const Case& plain = options.plain[n % options.plain.size()];
    return random_case(plain, case_seed(options.seed, fmt::format("{}/{}", to_string(plain.family), n)),
                       options.planned_tile);
}

FuzzCounts fuzz(const KernelSource& source, const Target& target, const FuzzOptions& options,
                const FuzzListener& on_end) {
    FuzzCounts counts;
    const auto start = Clock::now();
    // Planners make their lists when they are asked first: once here instead of in every worker.
    for (std::size_t n = 0; n < options.plain.size(); ++n) static_cast<void>(fuzz_case(options, n));
    const auto over = [&] {
        return (options.patience.count() > 0 && Clock::now() - start >= options.patience) ||
               (options.stop && options.stop());
    };
    const PoolOptions pool{options.jobs, options.timeout, over, [&] { return target.spent(); }};
    run_isolated(
        options.most > 0 ? options.most : std::numeric_limits<std::size_t>::max(), pool,
        [&](std::size_t n) { return pack(results_of(fuzz_case(options, n), source, options.of_case)); },
        [&](std::size_t n, const TaskEnd& end) {
            const CaseResult result = result_of(end, options, n);
            count(result, counts);
            on_end(n, result);
            return !over();
        });
    return counts;
}

} // namespace fmha::harness
