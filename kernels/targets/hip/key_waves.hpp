#pragma once

#include "kernels/targets/hip/accumulator.hpp"

#include <bit>
#include <cstdint>

namespace fmha::hip_target {

/// Makes one of the rows of waves that have had keys of their own. The next kernel may come when all keys have been copied. `Piece` of the plan is
/// its RowPlan, `Joined` the output of which every wave gets a part of the columns. It takes LDS from its beginning on.
template <class Block, auto Piece, auto Joined>
class KeyWaves {
  public:
    FMHA_DEVICE explicit KeyWaves(const Block& block) : block_(block) {}

    template <auto Of, class Registers, class Rows>
    FMHA_DEVICE auto join(Accumulator<Of, Registers>& out, Rows& top, Rows& total) {
        auto joined = accumulator<Joined>(block_);
        block_.machine.let_next_come();
        if (waves() == 1) {
            block_.machine.each([&](int thread) {
                FMHA_UNROLL
                for (int r = 0; r < layout_of<Of>(block_).registers; ++r)
                    joined.x.at(thread, r) = out.x.at(thread, r);
            });
            return joined;
        }
        // Without a key nobody has waited for the query yet.
        if constexpr (Block::Machine::has_tile_copies) block_.machine.wait_copies(0);
        block_.machine.barrier(); // every wave has read its last keys and values
        store_parts(out, top, total);
        block_.machine.barrier();
        add_parts<Of>(joined, top, total);
        return joined;
    }

  private:
    Block block_;

    static constexpr int unit =
        4; ///< registers that lie in LDS together; fragments have as many, or a multiple
    struct RowOfWave {
        float top, total;
    };

    FMHA_DEVICE const RowPlan& plan() const { return block_.template piece<Piece>(); }
    FMHA_DEVICE int waves() const { return layout_of<Joined>(block_).column_waves; }

    /// Every wave's output, maxima and totals, to LDS.
    template <auto Of, class Registers, class Rows>
    FMHA_DEVICE void store_parts(Accumulator<Of, Registers>& out, Rows& top, Rows& total) {
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int r = 0; r < layout_of<Of>(block_).registers; r += unit) {
                std::uint32_t words[unit];
                FMHA_UNROLL
                for (int i = 0; i < unit; ++i)
                    words[i] = std::bit_cast<std::uint32_t>(out.x.at(thread, r + i));
                block_.machine.template lds_write<unit>(thread, output_at<Of>(block_.wave(thread), thread, r),
                                                        words);
            }
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s) {
                const std::uint32_t words[2] = {std::bit_cast<std::uint32_t>(top.x.at(thread, s)),
                                                std::bit_cast<std::uint32_t>(total.x.at(thread, s))};
                block_.machine.template lds_write<2>(thread, row_at<Of>(block_.wave(thread), thread, s),
                                                     words);
            }
        });
    }
    /// The columns of each wave from all parts, relative to the largest maximum of their row.
    template <auto Of, class Output, class Rows>
    FMHA_DEVICE void add_parts(Output& joined, Rows& top, Rows& total) {
        auto largest = top, factor = top;
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int r = 0; r < layout_of<Joined>(block_).registers; ++r) joined.x.at(thread, r) = 0.0F;
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s) {
                total.x.at(thread, s) = 0.0F;
                FMHA_UNROLL
                for (int wave = 0; wave < waves(); ++wave)
                    largest.x.at(thread, s) =
                        __builtin_fmaxf(largest.x.at(thread, s), row_of<Of>(wave, thread, s).top);
            }
            FMHA_UNROLL
            for (int wave = 0; wave < waves(); ++wave) {
                FMHA_UNROLL
                for (int s = 0; s < plan().registers; ++s) {
                    const RowOfWave row = row_of<Of>(wave, thread, s);
                    const float most = largest.x.at(thread, s);
                    const float f = row.top == most ? 1.0F : block_.machine.exp2(row.top - most);
                    factor.x.at(thread, s) = f;
                    total.x.at(thread, s) += f * row.total;
                }
                FMHA_UNROLL
                for (int r = 0; r < layout_of<Joined>(block_).registers; r += unit) {
                    std::uint32_t words[unit];
                    block_.machine.template lds_read<unit>(
                        thread, output_at<Of>(wave, thread, own_part<Of>(thread, r)), words);
                    FMHA_UNROLL
                    for (int i = 0; i < unit; ++i)
                        joined.x.at(thread, r + i) +=
                            factor.x.at(thread, slot_of(r + i)) * std::bit_cast<float>(words[i]);
                }
            }
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s) top.x.at(thread, s) = largest.x.at(thread, s);
        });
    }

    /// Where registers r … r + unit − 1 of a wave's lane lie, and its value of row slot s.
    template <auto Of>
    FMHA_DEVICE int output_at(int wave, int thread, int r) const {
        const int units = layout_of<Of>(block_).registers / unit;
        return ((wave * units + r / unit) * block_.plan().wave_size + block_.lane(thread)) * unit * 4;
    }
    template <auto Of>
    FMHA_DEVICE int row_at(int wave, int thread, int s) const {
        const int after = waves() * layout_of<Of>(block_).registers * block_.plan().wave_size * 4;
        return after + ((wave * plan().registers + s) * block_.plan().wave_size + block_.lane(thread)) * 8;
    }
    template <auto Of>
    FMHA_DEVICE RowOfWave row_of(int wave, int thread, int s) const {
        std::uint32_t words[2];
        block_.machine.template lds_read<2>(thread, row_at<Of>(wave, thread, s), words);
        return {std::bit_cast<float>(words[0]), std::bit_cast<float>(words[1])};
    }
    /// The register of the output that becomes register r of the thread's part of the columns.
    template <auto Of>
    FMHA_DEVICE int own_part(int thread, int r) const {
        const AccumulatorPlan &all = layout_of<Of>(block_), &part = layout_of<Joined>(block_);
        const int line = part.column_tiles * part.fragment;
        return r / line * (all.column_tiles * all.fragment) + block_.wave(thread) * line + r % line;
    }
    FMHA_DEVICE int slot_of(int r) const {
        const AccumulatorPlan& part = layout_of<Joined>(block_);
        return r / (part.column_tiles * part.fragment) * part.row_slots +
               part.slot_of_register[r % part.fragment];
    }
};

} // namespace fmha::hip_target
