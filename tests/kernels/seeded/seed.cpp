#include "tests/kernels/seeded/seed.hpp"

#include "kernels/targets/host/host_target.hpp"
#include "tests/kernels/seeded/seeded_kernel.hpp"

namespace fmha::test {

std::span<const SeedPlace> seed_places() {
    static constexpr SeedPlace places[] = {
#include "seed_table.inc"
    };
    return places;
}

std::shared_ptr<const KernelInstance> seeded_kernel(const KernelConfig& config) {
    return host_target::make_instance(config);
}

} // namespace fmha::test
