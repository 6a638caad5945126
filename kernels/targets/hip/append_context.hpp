#pragma once

#include "kernels/targets/hip/append_plan.hpp"
#include "kernels/targets/hip/bit_copies.hpp"
#include "kernels/targets/hip/context.hpp"
#include "kernels/targets/hip/tile_memory.hpp"

/// The context of append-KV: pairs of channels in registers, and copies past them.
namespace fmha::hip_target {

namespace appending {

template <class Block>
using Memory = TileMemory<Block, &AppendPlan::rows>;
template <class Block>
using Copies = BitCopies<Block, &AppendPlan::copies>;

/// Pairs of channels, and their angles.
template <class Block>
class Pairs {
  public:
    FMHA_DEVICE explicit Pairs(const Block& block) : block_(block) {}
    FMHA_DEVICE auto first() const { return accumulator<&AppendPlan::tile>(block_); }
    FMHA_DEVICE auto second() const { return accumulator<&AppendPlan::tile>(block_); }
    FMHA_DEVICE auto cosines() const { return accumulator<&AppendPlan::tile>(block_); }
    FMHA_DEVICE auto sines() const { return accumulator<&AppendPlan::tile>(block_); }

    template <class Tile>
    FMHA_DEVICE void rotate(Tile& first, Tile& second, const Tile& cosine, const Tile& sine) {
        block_.machine.each([&](int thread) {
            each_place<Tile::piece>(block_, [&](int at, int, int, int) {
                const float x0 = first.x.at(thread, at), x1 = second.x.at(thread, at);
                const float c = cosine.x.at(thread, at), s = sine.x.at(thread, at);
                first.x.at(thread, at) = x0 * c - x1 * s;
                second.x.at(thread, at) = x1 * c + x0 * s;
            });
        });
    }

  private:
    Block block_;
};

} // namespace appending

template <class Machine, class Setup>
using AppendContext = Context<Machine, Setup, appending::Pairs, appending::Memory, appending::Copies>;

} // namespace fmha::hip_target
