// Declares a set of kernels, two fields of it open, and lets every kernel that it stands for compute.

#include "attention.hpp"
#include "dispatcher/declarations/expand.hpp"
#include "dispatcher/registry/catalogue.hpp"
#include "dispatcher/runner.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "kernels/targets/host/host_target.hpp"

#include <fmt/format.h>

DECL_FMHA_KERNEL_SET(mine, .add(fmha::SignatureDecl().dtype("fp32").hdim(64).mask(fmha::ANY),
                                fmha::AlgorithmDecl().pipeline("qr").tile(fmha::ANY), "gfx950"))

int main() {
    const auto archs = fmha::arch::ArchSet::built_in();
    const fmha::Expansion expansion = fmha::expand(fmha::declared_kernel_set("mine"), archs);
    fmt::print("{} kernels of {} combinations\n", expansion.kernels.size(), expansion.combinations);

    fmha::Registry registry;
    for (const fmha::KernelConfig& config : expansion.kernels)
        registry.add(fmha::host_target::make_instance(config));
    const fmha::Dispatcher dispatcher(registry, fmha::devices_of(archs));
    const fmha::Runner runner(dispatcher);

    example::Attention whole(4, 2, 70, 90), causal(4, 2, 70, 90);
    causal.causal();
    bool good = true;
    int ran = 0;
    for (const fmha::KernelConfig& config : expansion.kernels)
        for (example::Attention* attention : {&whole, &causal}) {
            const bool masked = attention->args().mask.type != fmha::MaskType::no_mask;
            if (masked != (config.signature.mask != fmha::MaskClass::none)) continue;
            attention->forget();
            runner.run_explicit(fmha::identifier(config), attention->problem(), attention->args(), {});
            good &= attention->judge(masked ? "causal" : "no mask");
            ++ran;
        }
    good &= example::check(ran > 1, "more than one kernel of the set ran");
    return good ? 0 : 1;
}
