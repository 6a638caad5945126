#pragma once

#include "kernels/programs/matrix.hpp"
#include "kernels/targets/hip/accumulator.hpp"

#include <bit>
#include <cstdint>

namespace fmha::hip_target {

/// Descales of single keys in LDS, and what they do to a tile of scores. `Piece` of the plan is a StagingPlan.
template <class Block, auto Piece>
class KeyDescales {
  public:
    FMHA_DEVICE explicit KeyDescales(const Block& block) : block_(block) {}

    /// Starts to copy those of a tile, of which `keys` exist, if any; others have that of the last one, as their scores are hidden. `number`(key,
    /// page): where one is, the page as it was looked up ahead, or 0.
    template <class Number>
    FMHA_DEVICE void bring(int stage, const kernels::PagedRows& paged, int keys, Number number) {
        if (keys <= 0) return;
        const int slots = plan().descale_slots, threads = block_.plan().threads;
        const auto place = block_.machine.template copy_place<1>(plan().descales_at(stage));
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int first = 0; first < slots; first += threads) {
                const int slot = block_.machine.local_thread(thread) + first;
                if (slot >= slots) continue;
                const int key = slot < keys ? slot : keys - 1;
                std::uint32_t page = 0;
                if (plan().pages_ahead)
                    block_.machine.template lds_read<1>(
                        thread, paged.looked_up + 4 * (key >> paged.page_bits), &page);
                block_.machine.template copy_from<1>(thread, place, 4 * first,
                                                     reinterpret_cast<const char*>(number(key, page)));
            }
        });
        block_.machine.commit_copies();
    }

    /// tile[r, c] *= rows[r] · the descale of column c. A lane has runs of `run` columns.
    template <class Tile, class Rows>
    FMHA_DEVICE void apply(int stage, Tile& tile, const Rows& rows) {
        const AccumulatorPlan& acc = layout_of<Tile::piece>(block_);
        const int from = block_.machine.scalar(plan().descales_at(stage));
        block_.machine.each([&](int thread) {
            const int lane = 4 * acc.col.of_lane(block_.lane(thread));
            each_place<Tile::piece>(
                block_,
                [&](int at, int slot, int, int col) {
                    std::uint32_t words[run];
                    block_.machine.template lds_read<run>(thread, from + lane + 4 * col, words);
                    const float row = rows.x.at(thread, slot);
                    FMHA_UNROLL
                    for (int i = 0; i < run; i += 2) {
                        float both[2] = {std::bit_cast<float>(words[i]), std::bit_cast<float>(words[i + 1])};
                        block_.machine.multiply_pair(both, row, row);
                        block_.machine.multiply_pair(&tile.x.at(thread, at + i), both[0], both[1]);
                    }
                },
                run);
        });
    }

  private:
    Block block_;
    static constexpr int run = StagingPlan::descale_run;

    FMHA_DEVICE const StagingPlan& plan() const { return block_.template piece<Piece>(); }
};

} // namespace fmha::hip_target
