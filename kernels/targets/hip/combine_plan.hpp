#pragma once

#include "dispatcher/types/element_type.hpp"
#include "dispatcher/types/kernel_values.hpp"
#include "kernels/programs/fmha_fwd_splitkv_combine.hpp"
#include "kernels/targets/hip/line_plan.hpp"

namespace fmha::hip_target {

/// The plan of split-KV's combine kernel.
using CombinePlan = LinePlan;

/// The plan of a configuration, or the problem with it. LDS holds a tile, where waves have to add up theirs.
constexpr CombinePlan combine_plan_of(const KernelConfig& cfg) {
    CombinePlan plan;
    const MatrixUnit unit = matrix_unit(cfg.arch);
    if (unit == MatrixUnit::none || cfg.algorithm.tile.n1 <= 0 ||
        cfg.algorithm.tile.n1 % line_channels != 0) {
        plan.problem = unit == MatrixUnit::none ? PlanProblem::unknown_unit : PlanProblem::combine_channels;
        return plan;
    }
    plan = line_plan(unit, kernels::combine_rows, kernels::combine_rows, cfg.algorithm.tile.n1);
    if (plan.waves > 1) plan.lds_bytes = plan.threads * plan.tile.registers * 4;
    plan.tile.stored = element_types(cfg.signature.data_type, fp8_flavour(cfg.arch)).o;
    return plan;
}

} // namespace fmha::hip_target
