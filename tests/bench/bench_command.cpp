// The cost of a whole run of `fmha enumerate` against the same list made in this process: start, tables, options and
// output come on top. `of_library` is the ratio of processor times; `of_budget` below 1 is within twice the budget of
// the library.

#include "kernels/catalog/catalog.hpp"

#include <benchmark/benchmark.h>

#include <ctime>
#include <fcntl.h>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fmha {
namespace {

double seconds_of(const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

/// Runs the command with its output thrown away; processor seconds that it took.
double run_command(std::vector<std::string> words) {
    words.insert(words.begin(), FMHA_COMMAND);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = 0;
    const int failed = posix_spawn(&child, FMHA_COMMAND, &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::runtime_error("the command does not start");
    int status = 0;
    rusage usage{};
    wait4(child, &status, 0, &usage);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("the command failed");
    return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

double thread_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Lists records, or names where `with_names`, in this process; processor seconds.
double run_library(catalog::RuleSet rules, bool with_names) {
    const auto archs = arch::ArchSet::built_in();
    catalog::Request request;
    request.rules = rules;
    request.targets = {ArchName("gfx950")};
    std::string name;
    const double begin = thread_seconds();
    catalog::enumerate(archs, request, [&](const KernelConfig& config) {
        benchmark::DoNotOptimize(&config);
        if (!with_names) return;
        name.clear();
        catalog::append_name(rules, config, name);
        benchmark::DoNotOptimize(name.data());
    });
    return thread_seconds() - begin;
}

void command(benchmark::State& state, catalog::RuleSet rules, bool with_names, double budget_ms) {
    double process = 0.0;
    double library = 0.0;
    for (auto _ : state) {
        library += run_library(rules, with_names);
        const double took = run_command({"enumerate", "--arch", "gfx950", "--rules",
                                         std::string(to_string(rules)), with_names ? "--names" : "--count"});
        process += took;
        state.SetIterationTime(took);
    }
    state.counters["of_library"] = process / library;
    state.counters["of_budget"] = 1e3 * process / static_cast<double>(state.iterations()) / (2.0 * budget_ms);
}

BENCHMARK_CAPTURE(command, ck_names, catalog::RuleSet::ck, true, 15.0)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(command, claim_records, catalog::RuleSet::claim, false, 5.0)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(command, claim_names, catalog::RuleSet::claim, true, 25.0)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(command, sweep_records, catalog::RuleSet::sweep, false, 500.0)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(command, sweep_names, catalog::RuleSet::sweep, true, 3000.0)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

} // namespace
} // namespace fmha

BENCHMARK_MAIN();
