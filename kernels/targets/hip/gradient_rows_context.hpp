#pragma once

#include "kernels/programs/bwd_decisions.hpp"
#include "kernels/targets/hip/combine_context.hpp"
#include "kernels/targets/hip/gradient_rows_plan.hpp"
#include "kernels/targets/hip/row_total.hpp"

/// The contexts of backward's first and last stage: row operations, and no product.
namespace fmha::hip_target {

/// The scalar decisions of backward as a part.
template <class Block>
struct GradientDecisions : kernels::BwdDecisions {
    FMHA_DEVICE explicit GradientDecisions(const Block&) {}
};

namespace gradient_rows {

template <class Block>
using Total = RowTotal<Block, &LinePlan::rows>;

} // namespace gradient_rows

template <class Machine, class Setup>
using DotDoOContext = Context<Machine, Setup, GradientDecisions, combining::Sums, combining::Rows,
                              combining::Memory, gradient_rows::Total>;

template <class Machine, class Setup>
using ConvertDqContext =
    Context<Machine, Setup, GradientDecisions, combining::Sums, combining::Rows, combining::Memory>;

} // namespace fmha::hip_target
