#pragma once

#include "kernels/targets/hip/accumulator.hpp"

#include <bit>
#include <cstdint>

namespace fmha::hip_target {

/// The sum over all rows of a block, once a block. `Piece` of the plan is its RowPlan; the first bytes of LDS hold a sum of
/// each wave.
template <class Block, auto Piece>
class RowTotal {
  public:
    FMHA_DEVICE explicit RowTotal(const Block& block) : block_(block) {}

    template <class Registers>
    FMHA_DEVICE void store_sum(float* to, const RowValues<Registers>& rows, float factor) {
        auto sum = block_.template registers<float, 1>();
        block_.machine.each([&](int thread) {
            sum.at(thread, 0) = 0.0F;
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s) sum.at(thread, 0) += rows.x.at(thread, s);
        });
        const int sharing = plan().sharing_lanes, lanes = block_.plan().wave_size;
        FMHA_UNROLL
        for (int bit = 1; bit < 64; bit *= 2)
            if (bit < lanes && (sharing & bit) == 0)
                block_.machine.fold(sum, bit, [](float a, float b) { return a + b; });
        block_.machine.each([&](int thread) {
            const auto word = std::bit_cast<std::uint32_t>(sum.at(thread, 0));
            if (block_.lane(thread) == 0)
                block_.machine.template lds_write<1>(thread, block_.wave(thread) * 4, &word);
        });
        block_.machine.barrier();
        block_.machine.each([&](int thread) {
            if (thread != 0) return;
            float total = 0.0F;
            FMHA_UNROLL
            for (int wave = 0; wave < block_.plan().waves; ++wave) {
                std::uint32_t word = 0;
                block_.machine.template lds_read<1>(thread, wave * 4, &word);
                total += std::bit_cast<float>(word);
            }
            *to = total == 0.0F ? 0.0F : factor * total;
        });
    }

  private:
    Block block_;

    FMHA_DEVICE const RowPlan& plan() const { return block_.template piece<Piece>(); }
};

} // namespace fmha::hip_target
