#include "kernels/targets/hip/block_shape.hpp"

#include "dispatcher/types/error.hpp"
#include "kernels/targets/hip/family_plan.hpp"
#include "kernels/targets/hip/ws_plan.hpp"
#include "kernels/targets/with_program.hpp"

#include <string>

namespace fmha::hip_target {

BlockShape block_shape(const KernelConfig& config) {
    BlockShape shape;
    const auto none =
        targets::with_program(config.signature.family, [&]<KernelFamily family>(kernels::Program<family>) {
            if (config.algorithm.pipeline == Pipeline::ws)
                shape = ws_plan_of(config);
            else if constexpr (HasPlan<family>)
                shape = FamilyPlan<family>::of(config);
            else
                throw UnsupportedInvocation("GPUs have no block plan for family " +
                                            std::string(to_string(family)));
        });
    if (none) throw UnsupportedInvocation(none->reason());
    return shape;
}

} // namespace fmha::hip_target
