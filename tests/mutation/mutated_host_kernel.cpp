#include "kernels/targets/host/host_target.hpp"
#include "tests/mutation/mutants.hpp"

namespace fmha::test {

std::shared_ptr<const KernelInstance> mutated_kernel(const KernelConfig& config) {
    return host_target::make_instance(config, 1);
}

} // namespace fmha::test
