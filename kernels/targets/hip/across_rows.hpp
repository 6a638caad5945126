#pragma once

#include "kernels/targets/hip/accumulator.hpp"

#include <bit>
#include <cstdint>

namespace fmha::hip_target {

/// Reductions over the rows of a block whose lanes have one row each: afterwards every row has the result. `Piece` of the plan
/// is its RowPlan; with more than one wave, the first bytes of LDS hold as many words a thread as a tile has registers.
template <class Block, auto Piece>
class AcrossRows {
  public:
    FMHA_DEVICE explicit AcrossRows(const Block& block) : block_(block) {}

    template <class Registers>
    FMHA_DEVICE void max_over_rows(RowValues<Registers>& rows) {
        combine<1>(rows.x, 1, [](float a, float b) { return __builtin_fmaxf(a, b); });
    }
    template <class Registers>
    FMHA_DEVICE void sum_over_rows(RowValues<Registers>& rows) {
        combine<1>(rows.x, 1, [](float a, float b) { return a + b; });
    }
    template <auto Of, class Registers>
    FMHA_DEVICE void sum_over_rows(Accumulator<Of, Registers>& tile) {
        combine<4>(tile.x, layout_of<Of>(block_).registers, [](float a, float b) { return a + b; });
    }

  private:
    Block block_;

    /// Of lanes, then of waves, always in the same order; `count` registers, a multiple of `width`.
    template <int width, class Registers, class F>
    FMHA_DEVICE void combine(Registers& x, int count, F f) {
        const int sharing = block_.template piece<Piece>().sharing_lanes, lanes = block_.plan().wave_size;
        FMHA_UNROLL
        for (int bit = 1; bit < 64; bit *= 2)
            if (bit < lanes && (sharing & bit) == 0) block_.machine.fold(x, bit, f);
        if (block_.plan().waves == 1) return;
        block_.machine.barrier(); // its former contents have been read
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int i = 0; i < count; i += width) {
                std::uint32_t words[static_cast<unsigned>(width)];
                FMHA_UNROLL
                for (int w = 0; w < width; ++w) words[w] = std::bit_cast<std::uint32_t>(x.at(thread, i + w));
                block_.machine.template lds_write<width>(thread, (thread * count + i) * 4, words);
            }
        });
        block_.machine.barrier();
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int wave = 0; wave < block_.plan().waves; ++wave) {
                const int there = (wave * lanes + block_.lane(thread)) * count;
                FMHA_UNROLL
                for (int i = 0; i < count; i += width) {
                    std::uint32_t words[static_cast<unsigned>(width)];
                    block_.machine.template lds_read<width>(thread, (there + i) * 4, words);
                    FMHA_UNROLL
                    for (int w = 0; w < width; ++w) {
                        const float y = std::bit_cast<float>(words[w]);
                        x.at(thread, i + w) = wave == 0 ? y : f(x.at(thread, i + w), y);
                    }
                }
            }
        });
    }
};

} // namespace fmha::hip_target
