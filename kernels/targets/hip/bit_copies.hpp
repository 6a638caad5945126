#pragma once

#include "kernels/targets/hip/block.hpp"
#include "kernels/targets/hip/line_view.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Between matrices in global memory, bit for bit: no value is decoded, so that a NaN keeps its payload. `Piece` of the plan is
/// a CopyPlan.
template <class Block, auto Piece>
class BitCopies {
  public:
    FMHA_DEVICE explicit BitCopies(const Block& block) : block_(block) {}

    FMHA_DEVICE void copy(const kernels::Matrix& to, std::int64_t to_row, const kernels::Matrix& from,
                          std::int64_t row, std::int64_t col) {
        const ElementType type = plan().type;
        const TileView in = LineView::of(from, type).window(row, col, plan().rows);
        const TileView out = LineView::written(to, type).window(to_row, col, plan().rows);
        const int lines = in.lines < out.lines ? in.lines : out.lines;
        const int elements = in.elements < out.elements ? in.elements : out.elements;
        const int unit = 16 * 8 / element_bits(type);
        const bool by_unit = in.granule == 16 && out.granule == 16;
        block_.machine.each([&](int thread) {
            const int line_step = plan().threads / plan().line_threads;
            const int element0 = thread % plan().line_threads;
            FMHA_NO_UNROLL
            for (int line = thread / plan().line_threads; line < lines; line += line_step) {
                if (by_unit) {
                    FMHA_NO_UNROLL
                    for (int e = element0 * unit; e < elements; e += plan().line_threads * unit)
                        *reinterpret_cast<Words<4>*>(place(out, line, e)) =
                            in.template read<4>(block_.machine, thread, line, e);
                } else {
                    FMHA_NO_UNROLL
                    for (int e = element0; e < elements; e += plan().line_threads)
                        copy_element(place(out, line, e), in.at(line, e), element_bits(type));
                }
            }
        });
    }

  private:
    Block block_;

    FMHA_DEVICE const CopyPlan& plan() const { return block_.template piece<Piece>(); }

    FMHA_DEVICE static char* place(const TileView& view, int line, int element) {
        return const_cast<char*>(view.at(line, element)); // NOLINT(*-const-cast): a view of an output
    }
    FMHA_DEVICE static void copy_element(char* to, const char* from, int bits) {
        if (bits == 32)
            *reinterpret_cast<std::uint32_t*>(to) = *reinterpret_cast<const std::uint32_t*>(from);
        else if (bits == 16)
            *reinterpret_cast<std::uint16_t*>(to) = *reinterpret_cast<const std::uint16_t*>(from);
        else
            *to = *from;
    }
};

} // namespace fmha::hip_target
