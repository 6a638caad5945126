#pragma once

#include "kernels/targets/hip/block_plan.hpp"
#include "kernels/targets/hip/context.hpp"
#include "kernels/targets/hip/key_waves.hpp"
#include "kernels/targets/hip/products.hpp"
#include "kernels/targets/hip/random_bytes.hpp"
#include "kernels/targets/hip/row_operations.hpp"
#include "kernels/targets/hip/tile_memory.hpp"
#include "kernels/targets/hip/weights.hpp"

/// The context of forward attention: the same for every architecture and for the emulated machine. A wave owns whole rows;
/// the differences come from the plan and the machine.
namespace fmha::hip_target {

namespace forward {

template <class Block>
using Rows = RowOperations<Block, &BlockPlan::rows>;
template <class Block>
using Memory = TileMemory<Block, &BlockPlan::rows>;
template <class Block>
using Queries = KeptOperand<Block, &BlockPlan::query, &BlockPlan::first, &BlockPlan::staging>;
template <class Block>
using KeysAndValues = Staging<Block, &BlockPlan::staging, &BlockPlan::key, &BlockPlan::value>;
template <class Block>
using Probabilities = Weights<Block, &BlockPlan::weights, &BlockPlan::second>;
template <class Block>
using Dropout = RandomBytes<Block, &BlockPlan::first, &BlockPlan::random>;
template <class Block>
using Joining = KeyWaves<Block, &BlockPlan::rows, &BlockPlan::joined>;

/// The tiles, each with its name for the program.
template <class Block>
class Tiles {
  public:
    FMHA_DEVICE explicit Tiles(const Block& block) : block_(block) {}
    FMHA_DEVICE auto query() const { return left_operand<&BlockPlan::query>(block_); }
    FMHA_DEVICE OperandStep<&BlockPlan::key> key() const { return {}; }
    FMHA_DEVICE OperandStep<&BlockPlan::value> value() const { return {}; }
    FMHA_DEVICE auto scores() const { return accumulator<&BlockPlan::first>(block_); }
    FMHA_DEVICE auto output() const { return accumulator<&BlockPlan::second>(block_); }

  private:
    Block block_;
};

} // namespace forward

template <class Machine, class Setup>
using BlockContext =
    Context<Machine, Setup, forward::KeysAndValues, forward::Queries, Products, forward::Tiles,
            forward::Probabilities, forward::Rows, forward::Dropout, forward::Memory>;

/// The same of split-KV, whose waves may have keys of their own.
template <class Machine, class Setup>
using SplitContext =
    Context<Machine, Setup, forward::KeysAndValues, forward::Queries, Products, forward::Tiles,
            forward::Probabilities, forward::Rows, forward::Dropout, forward::Memory, forward::Joining>;

} // namespace fmha::hip_target
