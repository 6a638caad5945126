#include "backward_chain.hpp"

#include "dispatcher/types/error.hpp"

namespace fmha::test {

BackwardChain chain_of(const KernelConfig& main, const std::vector<KernelConfig>& dots,
                       const std::vector<KernelConfig>& converts) {
    const Signature& s = main.signature;
    const auto companion = [&](const std::vector<KernelConfig>& kernels, bool convert) {
        for (const KernelConfig& kernel : kernels) {
            const Signature& own = kernel.signature;
            const Padding& pad = kernel.algorithm.pad;
            const bool pads_alike = (main.algorithm.pad.d != 0) == ((convert ? pad.d : pad.dv) != 0);
            if (kernel.arch == main.arch && own.data_type == s.data_type && own.mode == s.mode &&
                own.hdim_q == s.hdim_q && pad.s && pads_alike &&
                (!convert || own.is_deterministic == s.is_deterministic))
                return kernel;
        }
        throw Error("no companion kernel of " + identifier(main));
    };
    BackwardChain chain{companion(dots, false), main, {}};
    if (!chain.direct()) chain.convert = companion(converts, true);
    return chain;
}

} // namespace fmha::test
