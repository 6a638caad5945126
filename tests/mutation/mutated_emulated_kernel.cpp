#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "tests/mutation/mutants.hpp"

namespace fmha::test {

std::shared_ptr<const KernelInstance> mutated_kernel(const KernelConfig& config) {
    return hip_target::make_emulated_instance(config, 1);
}

} // namespace fmha::test
