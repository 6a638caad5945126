#pragma once

#include "kernels/targets/hip/across_rows.hpp"
#include "kernels/targets/hip/combine_plan.hpp"
#include "kernels/targets/hip/context.hpp"
#include "kernels/targets/hip/row_operations.hpp"
#include "kernels/targets/hip/tile_memory.hpp"

/// The context of split-KV's combine kernel: row operations, and no product.
namespace fmha::hip_target {

namespace combining {

template <class Block>
using Rows = RowOperations<Block, &CombinePlan::rows>;
template <class Block>
using Memory = TileMemory<Block, &CombinePlan::rows>;
template <class Block>
using Across = AcrossRows<Block, &CombinePlan::rows>;

/// The summands, and the sum.
template <class Block>
class Sums {
  public:
    /// Whose partial results are asked for together.
    static constexpr int splits_at_once = 16;

    FMHA_DEVICE explicit Sums(const Block& block) : block_(block) {}
    FMHA_DEVICE auto partial() const { return accumulator<&CombinePlan::tile>(block_); }
    FMHA_DEVICE auto output() const { return accumulator<&CombinePlan::tile>(block_); }

  private:
    Block block_;
};

} // namespace combining

template <class Machine, class Setup>
using CombineContext =
    Context<Machine, Setup, combining::Sums, combining::Rows, combining::Across, combining::Memory>;

} // namespace fmha::hip_target
