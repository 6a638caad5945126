// Two consumers with a registry each: one has kernels without mask, the other causal ones. Neither sees the other's, until they
// are merged.

#include "attention.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/runner.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

namespace {

void fill(fmha::Registry& registry, fmha::MaskClass mask) {
    for (const auto& kernel : example::host_kernels([mask](const fmha::KernelConfig& c) {
             return c.signature.hdim_q == 64 && c.signature.mask == mask;
         }))
        registry.add(kernel);
    fmt::print("{}: {} kernels\n", registry.name(), registry.size());
}

} // namespace

int main() {
    const auto devices = fmha::devices_of(fmha::arch::ArchSet::built_in());
    fmha::Registry vision("vision"), language("language");
    fill(vision, fmha::MaskClass::none);
    fill(language, fmha::MaskClass::causal);
    const fmha::Dispatcher for_vision(vision, devices), for_language(language, devices);
    example::Attention whole(2, 2, 90, 90), causal(2, 2, 90, 90);
    causal.causal();

    fmha::Runner(for_vision).run(whole.problem(), whole.args(), {});
    bool good = whole.judge("vision");
    fmha::Runner(for_language).run(causal.problem(), causal.args(), {});
    good &= causal.judge("language");
    good &= example::check(!for_vision.plan(causal.problem()).valid(), "vision has no causal kernel");

    vision.merge_from(language, fmha::Priority::low);
    causal.forget();
    fmha::Runner(for_vision).run(causal.problem(), causal.args(), {});
    good &= causal.judge("vision, after merging");
    return good ? 0 : 1;
}
