// The audited sets `claim` and `sweep` on gfx950: records counted one by one, and names. Prints the count of
// kernels, the time and the peak resident memory of each, beside the limits that the project sets itself.

#include "kernels/catalog/catalog.hpp"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

namespace fmha::catalog {
namespace {

Request request_for(RuleSet rules) {
    Request request;
    request.rules = rules;
    request.targets = {"gfx950"};
    return request;
}

/// Peak resident memory of this process since the last reset, in MiB.
double peak_mib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
    return 0;
}
void reset_peak() {
    std::ofstream("/proc/self/clear_refs") << "5";
}

void report(benchmark::State& state, std::size_t kernels, double limit_ms) {
    state.counters["kernels"] = static_cast<double>(kernels);
    state.counters["limit_ms"] = limit_ms;
    state.counters["peak_MiB"] = peak_mib();
}

/// Records as a caller sees them: tables are read from the compiled-in files first.
void records(benchmark::State& state, RuleSet rules, double limit_ms) {
    reset_peak();
    const Request request = request_for(rules);
    std::size_t kernels = 0;
    for (auto unused : state) {
        const auto archs = arch::ArchSet::built_in();
        kernels = 0;
        enumerate(archs, request, [&](const KernelConfig& config) {
            benchmark::DoNotOptimize(&config);
            ++kernels;
        });
    }
    report(state, kernels, limit_ms);
}

/// Records kept in memory.
void listed(benchmark::State& state, RuleSet rules, double limit_ms) {
    reset_peak();
    const auto archs = arch::ArchSet::built_in();
    const Request request = request_for(rules);
    std::size_t kernels = 0;
    for (auto unused : state) kernels = list(archs, request).size();
    report(state, kernels, limit_ms);
}

/// Names, one a line, through a buffer into a file.
void names(benchmark::State& state, RuleSet rules, double limit_ms) {
    reset_peak();
    const auto archs = arch::ArchSet::built_in();
    const Request request = request_for(rules);
    constexpr std::size_t chunk = std::size_t{1} << 20;
    std::size_t kernels = 0, bytes = 0;
    for (auto unused : state) {
        const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
        if (!file) {
            state.SkipWithError("no temporary file");
            return;
        }
        std::string text;
        text.reserve(chunk + 1024);
        kernels = bytes = 0;
        const auto flush = [&] {
            bytes += std::fwrite(text.data(), 1, text.size(), file.get());
            text.clear();
        };
        enumerate(archs, request, [&](const KernelConfig& config) {
            append_name(request.rules, config, text);
            text.push_back('\n');
            ++kernels;
            if (text.size() >= chunk) flush();
        });
        flush();
    }
    report(state, kernels, limit_ms);
    state.counters["bytes"] = static_cast<double>(bytes);
}

BENCHMARK_CAPTURE(records, claim_gfx950, RuleSet::claim, 5)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(listed, claim_gfx950, RuleSet::claim, 5)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(names, claim_gfx950, RuleSet::claim, 25)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(records, stored_gfx950, RuleSet::stored, 5)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(records, sweep_gfx950, RuleSet::sweep, 500)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(names, sweep_gfx950, RuleSet::sweep, 3000)->Unit(benchmark::kMillisecond);

} // namespace
} // namespace fmha::catalog

BENCHMARK_MAIN();
