// How fast the catalogue is: kernels listed per second and the ratio to the budget of each list. A ratio below 1 is
// within budget. Run on a quiet machine with --benchmark_repetitions=5 and read the medians.

#include "kernels/catalog/catalog.hpp"

#include <benchmark/benchmark.h>

#include <ctime>

namespace fmha::catalog {
namespace {

constexpr std::array ck_profiles{"0",   "1",   "2",   "3",   "4",   "100", "150", "200", "250",
                                 "300", "400", "500", "600", "700", "800", "801", "888"};
constexpr std::array ck_targets{"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"};

Request request(RuleSet rules, std::string_view target, std::string_view profile) {
    Request r;
    r.rules = rules;
    r.targets = {ArchName(target)};
    r.profile = parse_profile(profile);
    return r;
}

/// Processor time of this thread: the budgets are for one core, and a busy machine must not count against them.
double thread_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Runs `list_once` (returns the number of kernels) per iteration and reports counters per list.
template <class ListOnce>
void measure(benchmark::State& state, double budget_ms, ListOnce&& list_once) {
    std::size_t kernels = 0;
    double seconds = 0.0;
    for (auto _ : state) {
        const double begin = thread_seconds();
        kernels = list_once();
        seconds += thread_seconds() - begin;
    }
    const double per_list = seconds / static_cast<double>(state.iterations());
    state.counters["kernels"] = static_cast<double>(kernels);
    state.counters["ns_per_kernel"] = 1e9 * per_list / static_cast<double>(kernels);
    state.counters["of_budget"] = 1e3 * per_list / budget_ms;
}

std::size_t list_names(const arch::ArchSet& archs, const Request& r) {
    std::size_t kernels = 0;
    std::string name;
    enumerate(archs, r, [&](const KernelConfig& config) {
        name.clear();
        append_name({r.rules, r.masks}, config, name);
        benchmark::DoNotOptimize(name.data());
        ++kernels;
    });
    return kernels;
}

void load_tables(benchmark::State& state) {
    measure(state, 5.0, [] { return arch::ArchSet::built_in().all().size(); });
}

void ck_records(benchmark::State& state) {
    const arch::ArchSet archs = arch::ArchSet::built_in();
    measure(state, 15.0, [&] {
        std::size_t kernels = 0;
        enumerate(archs, request(RuleSet::ck, "gfx950", "0"), [&](const KernelConfig& config) {
            benchmark::DoNotOptimize(&config);
            ++kernels;
        });
        return kernels;
    });
}

void ck_names(benchmark::State& state) {
    const arch::ArchSet archs = arch::ArchSet::built_in();
    measure(state, 15.0, [&] { return list_names(archs, request(RuleSet::ck, "gfx950", "0")); });
    // Upstream's generator took 15.5 s for this list (Python 3, one core of the machine this was developed on).
    constexpr double upstream_of_budget = 15.5e3 / 15.0;
    state.counters["times_upstream"] = upstream_of_budget / state.counters["of_budget"];
}

void ck_all_architectures_and_profiles(benchmark::State& state) {
    const arch::ArchSet archs = arch::ArchSet::built_in();
    measure(state, 1000.0, [&] {
        std::size_t kernels = 0;
        for (const char* target : ck_targets)
            for (const char* profile : ck_profiles)
                kernels += list_names(archs, request(RuleSet::ck, target, profile));
        return kernels;
    });
}

void house_names(benchmark::State& state) {
    const arch::ArchSet archs = arch::ArchSet::built_in();
    measure(state, 15.0, [&] { return list_names(archs, request(RuleSet::house, "gfx950", "all")); });
}

BENCHMARK(load_tables)->Unit(benchmark::kMillisecond);
BENCHMARK(ck_records)->Unit(benchmark::kMillisecond);
BENCHMARK(ck_names)->Unit(benchmark::kMillisecond);
BENCHMARK(ck_all_architectures_and_profiles)->Unit(benchmark::kMillisecond);
BENCHMARK(house_names)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace fmha::catalog

BENCHMARK_MAIN();
