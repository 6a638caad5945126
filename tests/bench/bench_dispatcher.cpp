// Planning and registry building against their limits.
//
// Claim: the 33,541 gfx950 configurations of rule set `claim` built in <= 50 ms, a plan in <= 2 us median and
// <= 10 us at p99. Sweep: <= 20 us median with 2.86 million configurations; the curve starts at 1,000. Every
// row also says how many allocations one plan makes after warm-up.
#include "dispatcher/dispatcher.hpp"
#include "dispatcher/registry/catalogue.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <random>

namespace {

std::atomic<std::int64_t> allocations{0};

} // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace {

using namespace fmha;

/// Every record carries the architecture itself, also where the rule set speaks of groups of them.
std::vector<KernelConfig> kernels_of(const arch::ArchSet& archs, catalog::RuleSet rules) {
    catalog::Request request;
    request.rules = rules;
    request.targets = {ArchName("gfx950")};
    std::vector<KernelConfig> list = catalog::list(archs, request);
    for (KernelConfig& config : list) config.arch = request.targets.front();
    return list;
}

const std::vector<KernelConfig>& configs(catalog::RuleSet rules) {
    static const arch::ArchSet archs = arch::ArchSet::built_in();
    static const std::vector<KernelConfig> claim = kernels_of(archs, catalog::RuleSet::claim);
    if (rules == catalog::RuleSet::claim) return claim;
    static const std::vector<KernelConfig> sweep = [] {
        auto all = kernels_of(archs, catalog::RuleSet::sweep);
        // Any prefix of the shuffled list is a fair sample of the whole.
        std::shuffle(all.begin(), all.end(), std::mt19937_64(3));
        return all;
    }();
    return sweep;
}

/// Problems as models pose them: several families, types, masks, lengths with and without tails.
std::vector<Problem> problems() {
    std::mt19937_64 random(11);
    const auto pick = [&](auto... values) {
        const std::array<std::common_type_t<decltype(values)...>, sizeof...(values)> list{values...};
        return list[random() % list.size()];
    };
    std::vector<Problem> list;
    while (list.size() < 256) {
        ProblemBuilder builder;
        const ApiFamily api = pick(ApiFamily::fwd, ApiFamily::fwd, ApiFamily::fwd_splitkv, ApiFamily::bwd,
                                   ApiFamily::fwd_pagedkv, ApiFamily::batch_prefill);
        const std::int64_t hdim = pick(64, 72, 128, 192, 256);
        builder.api_family(api)
            .gfx_arch("gfx950")
            .data_type(pick(DataType::fp16, DataType::bf16))
            .dims(hdim, hdim, pick(1, 4, 16), pick(1, 128, 1000, 4096), pick(128, 1000, 4096))
            .nheads(32, pick(8, 32))
            .mask_type(pick(MaskType::no_mask, MaskType::bottom_right))
            .window(-1, 0)
            .lse(pick(true, false));
        if (api == ApiFamily::fwd_splitkv) builder.num_splits(pick(1, 4, 16));
        if (api == ApiFamily::fwd_pagedkv) builder.page_size(128);
        if (api == ApiFamily::batch_prefill) {
            Presence presence;
            presence.seqstart_q = true;
            builder.group_mode(true)
                .max_seqlen(1000, 4096)
                .kv_cache(KvLayout::vectorized, KvLookup::sglang_1d, 16)
                .variable_lengths(presence);
        }
        list.push_back(builder.build());
    }
    return list;
}

void build_registry(benchmark::State& state) {
    const auto& claim = configs(catalog::RuleSet::claim);
    for (auto _ : state) {
        Registry registry;
        registry.add(claim);
        benchmark::DoNotOptimize(registry.size());
    }
    state.counters["configurations"] = static_cast<double>(claim.size());
}

void plan(benchmark::State& state, catalog::RuleSet rules, std::size_t count) {
    const auto& all = configs(rules);
    Registry registry;
    registry.add(std::span(all).first(std::min(count, all.size())));
    const Dispatcher dispatcher(registry, {{"gfx950", 256, 64}});
    const std::vector<Problem> questions = problems();
    std::int64_t found = 0;
    for (const Problem& problem : questions) found += dispatcher.plan(problem).valid() ? 1 : 0;
    std::vector<double> microseconds;
    microseconds.reserve(1 << 20);
    std::size_t next = 0;
    const std::int64_t before = allocations.load();
    for (auto _ : state) {
        const Problem& problem = questions[next++ % questions.size()];
        const auto start = std::chrono::steady_clock::now();
        benchmark::DoNotOptimize(dispatcher.plan(problem));
        const double time = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        state.SetIterationTime(time);
        if (microseconds.size() < microseconds.capacity()) microseconds.push_back(time * 1e6);
    }
    state.counters["allocations"] =
        static_cast<double>(allocations.load() - before) / static_cast<double>(state.iterations());
    std::sort(microseconds.begin(), microseconds.end());
    const auto at = [&](double part) {
        return microseconds[static_cast<std::size_t>(part * static_cast<double>(microseconds.size() - 1))];
    };
    state.counters["registered"] = static_cast<double>(registry.size());
    state.counters["planned_of_256"] = static_cast<double>(found);
    state.counters["median_us"] = at(0.5);
    state.counters["p99_us"] = at(0.99);
}

} // namespace

BENCHMARK(build_registry)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, claim, catalog::RuleSet::claim, 1U << 30)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan, sweep_1k, catalog::RuleSet::sweep, 1'000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan, sweep_10k, catalog::RuleSet::sweep, 10'000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan, sweep_100k, catalog::RuleSet::sweep, 100'000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan, sweep_1m, catalog::RuleSet::sweep, 1'000'000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan, sweep_all, catalog::RuleSet::sweep, 1U << 30)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_MAIN();
