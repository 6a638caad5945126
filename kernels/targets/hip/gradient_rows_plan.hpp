#pragma once

#include "dispatcher/types/element_type.hpp"
#include "dispatcher/types/kernel_values.hpp"
#include "kernels/targets/hip/line_plan.hpp"

#include <cstdint>

/// The plans of backward's first and last stage, which multiply no matrices.
namespace fmha::hip_target {

/// Why no GPU has such a kernel of backward for the rows and channels of a configuration.
constexpr PlanProblem gradient_rows_problem(const KernelConfig& cfg, std::int64_t channels) {
    if (matrix_unit(cfg.arch) == MatrixUnit::none) return PlanProblem::unknown_unit;
    return cfg.algorithm.tile.m0 != 64 || channels <= 0 || channels % line_channels != 0
               ? PlanProblem::gradient_rows
               : PlanProblem::none;
}

inline constexpr int gradient_waves = 8; ///< at most, of a block

/// The plan of `dot_do_o`. LDS holds a sum of each wave.
constexpr LinePlan dot_do_o_plan_of(const KernelConfig& cfg) {
    LinePlan plan;
    plan.problem = gradient_rows_problem(cfg, cfg.signature.hdim_v);
    if (plan.problem != PlanProblem::none) return plan;
    plan = line_plan(matrix_unit(cfg.arch), cfg.algorithm.tile.m0, gradient_waves,
                     static_cast<int>(cfg.signature.hdim_v));
    plan.tile.loaded = element_types(cfg.signature.data_type, fp8_flavour(cfg.arch)).o;
    plan.lds_bytes = plan.waves * 4;
    return plan;
}

/// The plan of `convert_dq`.
constexpr LinePlan convert_dq_plan_of(const KernelConfig& cfg) {
    LinePlan plan;
    plan.problem = gradient_rows_problem(cfg, cfg.signature.hdim_q);
    if (plan.problem != PlanProblem::none) return plan;
    plan = line_plan(matrix_unit(cfg.arch), cfg.algorithm.tile.m0, gradient_waves,
                     static_cast<int>(cfg.signature.hdim_q));
    plan.tile.stored = element_types(cfg.signature.data_type, fp8_flavour(cfg.arch)).q;
    return plan;
}

} // namespace fmha::hip_target
