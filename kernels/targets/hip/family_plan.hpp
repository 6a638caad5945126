#pragma once

#include "kernels/targets/hip/append_plan.hpp"
#include "kernels/targets/hip/backward_plan.hpp"
#include "kernels/targets/hip/block_plan.hpp"
#include "kernels/targets/hip/combine_plan.hpp"
#include "kernels/targets/hip/gradient_rows_plan.hpp"

namespace fmha::hip_target {

/// How this target runs the kernels of a family: `of(config)` is the block plan. Its context is `FamilyContext`. A family without
/// one has no kernels for GPUs.
template <KernelFamily family>
struct FamilyPlan;

template <KernelFamily family>
concept PlannedFamily = requires(const KernelConfig& config) {
    FamilyPlan<family>::of(config);
};

template <>
struct FamilyPlan<KernelFamily::fwd> {
    static constexpr BlockPlan of(const KernelConfig& config) { return plan_of(config); }
};

template <>
struct FamilyPlan<KernelFamily::fwd_pagedkv> : FamilyPlan<KernelFamily::fwd> {};

template <>
struct FamilyPlan<KernelFamily::fwd_splitkv> : FamilyPlan<KernelFamily::fwd> {};

template <>
struct FamilyPlan<KernelFamily::batch_prefill> : FamilyPlan<KernelFamily::fwd> {};

template <>
struct FamilyPlan<KernelFamily::fwd_splitkv_combine> {
    static constexpr CombinePlan of(const KernelConfig& config) { return combine_plan_of(config); }
};

template <>
struct FamilyPlan<KernelFamily::fwd_appendkv> {
    static constexpr AppendPlan of(const KernelConfig& config) { return append_plan_of(config); }
};

template <>
struct FamilyPlan<KernelFamily::bwd_dot_do_o> {
    static constexpr LinePlan of(const KernelConfig& config) { return dot_do_o_plan_of(config); }
};

template <>
struct FamilyPlan<KernelFamily::bwd_dq_dk_dv> {
    static constexpr BackwardPlan of(const KernelConfig& config) { return backward_plan_of(config); }
};

template <>
struct FamilyPlan<KernelFamily::bwd_convert_dq> {
    static constexpr LinePlan of(const KernelConfig& config) { return convert_dq_plan_of(config); }
};

} // namespace fmha::hip_target
