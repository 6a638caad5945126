#include "tests/mutation/mutants.hpp"

#include "kernels/targets/host/host_target.hpp"

#include <fmt/format.h>

namespace fmha::test {

std::string Mutant::name() const {
    return fmt::format("{}: {} {:+}: {}", header, operation, by, expression);
}

std::span<const Mutant> mutants() {
    static constexpr Mutant all[] = {
#include "mutants.inc"
    };
    return all;
}

std::shared_ptr<const KernelInstance> mutated_kernel(const KernelConfig& config) {
    return host_target::make_instance(config, 1);
}

} // namespace fmha::test
