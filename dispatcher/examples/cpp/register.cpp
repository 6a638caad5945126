// Fills one registry from three sources: the catalogue, a kernel that can run, and the same kernel once more.

#include "attention.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/runner.hpp"

#include <fmt/format.h>

int main() {
    const auto archs = fmha::arch::ArchSet::built_in();
    fmha::Registry registry("several sources");
    fmha::catalog::Request request;
    request.rules = fmha::catalog::RuleSet::house;
    request.targets = {fmha::ArchName("gfx950")};
    request.families = fmha::catalog::FamilySet::of(fmha::KernelFamily::fwd);
    const std::size_t listed = fmha::add_catalogue(registry, archs, request);
    fmt::print("{} kernels of the catalogue, none of them built\n", listed);

    const auto kernels = example::host_kernels([](const fmha::KernelConfig& c) {
        return c.signature.hdim_q == 64 && c.signature.hdim_v == 64 &&
               c.signature.mask == fmha::MaskClass::none;
    });
    for (const auto& kernel : kernels) registry.add(kernel, fmha::Priority::high);
    for (const auto& kernel : kernels) registry.add(kernel);
    bool good = example::check(!kernels.empty() && registry.size() == listed,
                               "a kernel that several sources list is registered once");
    const auto entry = registry.lookup(fmha::identifier(kernels.front()->config()));
    good &= example::check(entry && entry->instance != nullptr && entry->priority == fmha::Priority::high,
                           "it is built now, at the highest of its priorities");

    const fmha::Dispatcher dispatcher(registry, fmha::devices_of(archs));
    example::Attention attention(4, 4, 100, 100);
    fmha::Runner(dispatcher).run(attention.problem(), attention.args(), {});
    good &= attention.judge("planned among all of them");
    registry.clear();
    good &= example::check(registry.empty(), "a registry can be cleared");
    return good ? 0 : 1;
}
