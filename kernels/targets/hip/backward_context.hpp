#pragma once

#include "kernels/targets/hip/backward_dropout.hpp"
#include "kernels/targets/hip/backward_operands.hpp"
#include "kernels/targets/hip/backward_tiles.hpp"
#include "kernels/targets/hip/context.hpp"
#include "kernels/targets/hip/gradient_rows_context.hpp"

/// The context of backward's main stage.
namespace fmha::hip_target {

template <class Machine, class Setup>
using BackwardContext = Context<Machine, Setup, GradientDecisions, BackwardOperands, BackwardRows,
                                BackwardMemory, BackwardDropout>;

} // namespace fmha::hip_target
