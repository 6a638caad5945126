#pragma once

#include "kernels/targets/hip/row_operations.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// The columns of one row that a lane holds, as bits of words: `run` consecutive ones of every `step`, from the lane's first one on.
struct LaneColumns {
    int run = 0, step = 0; ///< powers of two
    int count = 0;

    static constexpr int word_bits = 32, most_words = 2;

    FMHA_DEVICE static constexpr LaneColumns of(const AccumulatorPlan& acc) {
        const int run = acc.fragment / acc.row_slots;
        return {run, acc.cols, run * acc.column_tiles};
    }
    FMHA_DEVICE constexpr int words() const { return (count + word_bits - 1) / word_bits; }
    /// Of a column, counted from the lane's first one.
    FMHA_DEVICE constexpr int bit(int column) const { return column / step * run + column % step; }
    /// Those of a word that lie before `end`, which is counted from the lane's first column.
    FMHA_DEVICE constexpr std::uint32_t before(int end, int word) const {
        // Of a number that is not below 0 the quotient is a shift.
        const int columns = count / run * step, inside = end < 0 ? 0 : end > columns ? columns : end;
        const int runs =
            static_cast<int>(static_cast<std::uint32_t>(inside) / static_cast<std::uint32_t>(step));
        const int rest = inside & (step - 1);
        const int own = runs * run + (rest < run ? rest : run) - word * word_bits;
        const int in_word = own < 0 ? 0 : own > word_bits ? word_bits : own;
        return static_cast<std::uint32_t>((std::uint64_t{1} << in_word) - 1);
    }
};

/// Arithmetic of a team.
template <class Block>
class TeamRows : public RowOperations<Block, &BlockPlan::rows> {
    using Base = RowOperations<Block, &BlockPlan::rows>;

  public:
    FMHA_DEVICE explicit TeamRows(const Block& block) : Base(block), block_(block) {}

    /// What a row sees are bits, made once a row and word: an element is a bit and a choice, not three comparisons.
    template <class Tile>
    FMHA_DEVICE void hide(Tile& scores, const kernels::HiddenKeys& hidden) {
        const AccumulatorPlan& acc = layout_of<Tile::piece>(block_);
        block_.machine.each([&](int thread) {
            const int here = block_.machine.local_thread(thread);
            const int row0 = acc.row_of_wave(block_.wave(here)) + acc.row.of_lane(block_.lane(here));
            const int col0 = acc.col.of_lane(block_.lane(here));
            const LaneColumns own = LaneColumns::of(acc);
            std::uint32_t shown[row_slots][LaneColumns::most_words] = {};
            FMHA_UNROLL
            for (int slot = 0; slot < row_slots; ++slot) {
                const auto seen = hidden.columns_of(row0 + block_.plan().rows.row_of_slot[slot]);
                FMHA_UNROLL
                for (int word = 0; word < LaneColumns::most_words; ++word) {
                    if (word >= own.words()) break;
                    shown[slot][word] = own.before(seen.end - col0, word);
                    if (hidden.kernel == MaskClass::generic)
                        shown[slot][word] &=
                            ~own.before(seen.begin - col0, word) | own.before(seen.sinks - col0, word);
                }
            }
            each_place<Tile::piece>(block_, [&](int at, int slot, int, int col) {
                const int bit = own.bit(col);
                const std::uint32_t word = shown[slot][bit / LaneColumns::word_bits];
                if ((word & std::uint32_t{1} << bit % LaneColumns::word_bits) == 0)
                    scores.x.at(thread, at) = kernels::never;
            });
        });
    }

  private:
    /// A wave of a team has 16 rows, a lane two of them.
    static constexpr int row_slots = 2;

    Block block_;
};

} // namespace fmha::hip_target
