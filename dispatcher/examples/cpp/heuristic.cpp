// A heuristic of one's own: small tiles for short sequences, large ones for long ones.

#include "attention.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/runner.hpp"

#include <fmt/format.h>

#include <algorithm>

int main() {
    const auto archs = fmha::arch::ArchSet::built_in();
    const auto kernels = example::host_kernels([](const fmha::KernelConfig& c) {
        return c.signature.hdim_q == 128 && c.signature.hdim_v == 128 &&
               c.signature.mask == fmha::MaskClass::none && c.algorithm.pad.s && c.algorithm.pad.d == 1;
    });
    fmha::Registry registry;
    for (const auto& kernel : kernels) registry.add(kernel);
    const auto by_rows = [](const auto& kernel) { return kernel->config().algorithm.tile.m0; };
    const auto [small, large] = std::ranges::minmax_element(kernels, {}, by_rows);
    fmt::print("tiles of {} to {} rows\n", by_rows(*small), by_rows(*large));
    bool good = example::check(by_rows(*small) < by_rows(*large), "there are tiles of different sizes");

    fmha::Dispatcher dispatcher(registry, fmha::devices_of(archs));
    dispatcher.set_heuristic([&small, &large](const fmha::Problem& problem) {
        const auto& kernel = problem.seqlen_q <= 64 ? *small : *large;
        return std::vector{fmha::identifier(kernel->config())};
    });
    const fmha::Runner runner(dispatcher);
    for (const std::int64_t length : {32, 200}) {
        example::Attention attention(2, 2, length, length, 128);
        const fmha::RunResult result = runner.run(attention.problem(), attention.args(), {});
        const auto& ran = result.plan.stages().front().kernel->config;
        good &=
            example::check(ran == (length <= 64 ? *small : *large)->config(), "the heuristic's kernel ran");
        good &= attention.judge(length <= 64 ? "short" : "long");
    }
    dispatcher.set_heuristic({});
    good &=
        example::check(dispatcher.strategy() == fmha::SelectionStrategy::first_fit, "it can be taken away");
    return good ? 0 : 1;
}
