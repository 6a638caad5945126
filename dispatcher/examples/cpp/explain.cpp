// Asks why a kernel was chosen, takes it away, and sees the second best one run.

#include "dispatcher/explain/explain.hpp"
#include "attention.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/runner.hpp"

#include <fmt/format.h>

int main() {
    const auto archs = fmha::arch::ArchSet::built_in();
    fmha::Registry registry;
    for (const auto& kernel : example::host_kernels([](const fmha::KernelConfig& c) {
             return c.signature.hdim_q == 64 || c.signature.hdim_q == 128;
         }))
        registry.add(kernel);
    const fmha::Dispatcher dispatcher(registry, fmha::devices_of(archs));
    example::Attention attention(4, 2, 100, 100);

    const fmha::Explanation first = fmha::explain(dispatcher, attention.problem());
    fmt::print("{}", fmha::to_text(first));
    const fmha::StageExplanation& stage = first.stages.front();
    bool good =
        example::check(stage.kernel && stage.runner_up, "there is a best kernel and a second best one");
    good &= example::check(!stage.nearest.empty(), "kernels that came near are named with their reasons");
    if (!good) return 1;

    registry.filter([&](const fmha::KernelEntry& entry) { return registry.name_of(entry) != *stage.kernel; });
    const fmha::Explanation second = fmha::explain(dispatcher, attention.problem());
    good &= example::check(second.stages.front().kernel == stage.runner_up->kernel,
                           "without the best one the second best one is chosen");
    fmha::Runner(dispatcher).run(attention.problem(), attention.args(), {});
    good &= attention.judge("second best");
    return good ? 0 : 1;
}
