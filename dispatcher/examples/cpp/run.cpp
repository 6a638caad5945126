// Runs forward attention through the runner, with and without a clock, and sees that a refused problem is refused.

#include "attention.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/runner.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

int main() {
    const auto archs = fmha::arch::ArchSet::built_in();
    fmha::Registry registry;
    for (const auto& kernel :
         example::host_kernels([](const fmha::KernelConfig& c) { return c.signature.hdim_q == 64; }))
        registry.add(kernel);
    fmt::print("{} kernels\n", registry.size());
    const fmha::Dispatcher dispatcher(registry, fmha::devices_of(archs));
    fmha::Runner runner(dispatcher);

    bool good = example::check(!example::Attention(1, 1, 8, 8).judge("before any run"),
                               "an output that no kernel wrote is noticed");
    example::Attention spoilt(1, 1, 8, 8);
    runner.run(spoilt.problem(), spoilt.args(), {});
    static_cast<float*>(spoilt.args().o.data)[3] = NAN;
    good &= example::check(!spoilt.judge("one element spoilt"), "and so is one element that is no number");
    for (const auto& [heads, rows, keys] :
         {std::array<std::int64_t, 3>{1, 1, 1}, {8, 65, 127}, {2, 128, 300}}) {
        example::Attention attention(heads, 1, rows, keys);
        runner.run(attention.problem(), attention.args(), {});
        good &= attention.judge("whole");
        attention.causal().forget();
        runner.run(attention.problem(), attention.args(), {});
        good &= attention.judge("causal");
    }
    example::Attention attention(4, 4, 64, 64);
    runner.set_benchmarking(true);
    runner.set_timing(1, 5);
    const fmha::RunResult timed = runner.run(attention.problem(), attention.args(), {});
    fmt::print("{} launches, {:.3f} ms in the middle\n", timed.launches, timed.median_ms);
    good &= example::check(timed.launches == 6 && timed.median_ms > 0.0,
                           "warm-up and repeats were launched and timed");

    example::Attention wide(4, 4, 64, 64, 128);
    try {
        runner.run(wide.problem(), wide.args(), {});
        good &= example::check(false, "a problem that no kernel takes is refused");
    } catch (const fmha::NoKernelFound& refusal) {
        fmt::print("{}\n", refusal.what());
        good &= example::check(true, "a problem that no kernel takes is refused");
    }
    return good ? 0 : 1;
}
