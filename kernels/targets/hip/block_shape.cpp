#include "kernels/targets/hip/block_shape.hpp"

#include "kernels/targets/hip/family_plan.hpp"
#include "kernels/targets/hip/ws_plan.hpp"
#include "kernels/targets/with_program.hpp"

namespace fmha::hip_target {

BlockShape block_shape(const KernelConfig& config) {
    if (config.algorithm.pipeline == Pipeline::ws) return ws_plan_of(config);
    return targets::with_program(config.signature.family,
                                 [&]<KernelFamily family>(kernels::Program<family>) -> BlockShape {
                                     if constexpr (PlannedFamily<family>)
                                         return FamilyPlan<family>::of(config);
                                     else
                                         return planning::refused<BlockShape>(PlanProblem::no_plan);
                                 });
}

} // namespace fmha::hip_target
