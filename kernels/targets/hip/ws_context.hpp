#pragma once

#include "kernels/targets/hip/context.hpp"
#include "kernels/targets/hip/team_products.hpp"
#include "kernels/targets/hip/team_rows.hpp"
#include "kernels/targets/hip/tile_memory.hpp"
#include "kernels/targets/hip/weights.hpp"

/// The context of warp-specialised forward attention, as one warp group sees it.
namespace fmha::hip_target {

namespace warp_specialised {

template <class Block>
using Rows = TeamRows<Block>;
template <class Block>
using Memory = TileMemory<Block, &BlockPlan::rows>;
template <class Block>
using Probabilities = Weights<Block, &BlockPlan::weights, &BlockPlan::second>;

/// Streams, and products of the tiles that they bring.
template <class Block>
class Work : public TeamWork<Block, &WsPlan::queries, &WsPlan::keys, &WsPlan::values> {
    using Base = TeamWork<Block, &WsPlan::queries, &WsPlan::keys, &WsPlan::values>;

  public:
    FMHA_DEVICE explicit Work(const Block& block) : Base(block), block_(block), products_(block) {}

    FMHA_DEVICE auto scores() const { return accumulator<&BlockPlan::first>(block_); }
    FMHA_DEVICE auto output() const { return accumulator<&BlockPlan::second>(block_); }
    FMHA_DEVICE auto addend() const { return accumulator<&WsPlan::addend>(block_); }

    template <class Acc, auto Left, auto Right>
    FMHA_DEVICE void start(Acc& acc, const OperandStream<Left>& left, const OperandStream<Right>& right) {
        products_.start_abt(acc, block_.template piece<Left>(), this->taken(left),
                            block_.template piece<Right>(), this->taken(right));
    }
    template <class Acc, class Registers, auto Right>
    FMHA_DEVICE void start(Acc& acc, WeightTile<Registers>& left, const OperandStream<Right>& right,
                           bool adds = true) {
        products_.start_ab(acc, left, block_.template piece<Right>(), this->taken(right),
                           block_.template piece<&BlockPlan::second>().depth_fragments, adds);
    }
    template <class Acc>
    FMHA_DEVICE void settle(Acc& acc) {
        block_.machine.keep(acc.x);
    }
    template <class Sums>
    FMHA_DEVICE void hold_behind(const Sums& sums) {
        block_.machine.hold_behind(sums.x);
    }
    template <class Acc>
    FMHA_DEVICE void finish(Acc& acc, int under_way) {
        products_.finish(acc, under_way);
    }

  private:
    Block block_;
    TeamProducts<Block> products_;
};

} // namespace warp_specialised

template <class Machine, class Setup>
using WsContext = Context<Machine, Setup, warp_specialised::Work, warp_specialised::Probabilities,
                          warp_specialised::Rows, warp_specialised::Memory>;

} // namespace fmha::hip_target
