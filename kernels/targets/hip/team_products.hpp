#pragma once

#include "kernels/targets/hip/products.hpp"
#include "kernels/targets/hip/streams.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// The products of a team, which run while it does something else.
template <class Block>
class TeamProducts {
  public:
    FMHA_DEVICE explicit TeamProducts(const Block& block) : block_(block) {}

    /// Starts acc = left · rightᵀ, of rows of the team and all lines of `right`.
    template <auto Product, class Registers>
    FMHA_DEVICE void start_abt(Accumulator<Product, Registers>& acc, const StreamPlan& left, int left_address,
                               const StreamPlan& right, int right_address) {
        const int row = (block_.machine.group() - 1) * WsPlan::team_rows;
        const MatrixDescriptor a =
            block_.machine.descriptor(left_address + row * SwizzledTile::line_bytes, unused, eight_lines);
        const MatrixDescriptor b = block_.machine.descriptor(right_address, unused, eight_lines);
        block_.machine.fence_products(acc.x);
        FMHA_UNROLL
        for (int k = 0; k < block_.template piece<Product>().depth_fragments; ++k)
            block_.machine.multiply_lds(left.type, acc.x, a + along_lines(left, k), b + along_lines(right, k),
                                        k > 0);
        block_.machine.commit_products(acc.x);
    }

    /// Starts acc += left · right, or acc = where not `adds`: of all lines of `right`, which are its depth, or its columns in a stream
    /// by column.
    template <auto Piece, class Registers, class Left>
    FMHA_DEVICE void start_ab(Accumulator<Piece, Registers>& acc, Left& left, const StreamPlan& right,
                              int right_address, int fragments, bool adds) {
        const int leading = right.by_column ? unused : SwizzledTile::block_bytes(right.lines);
        const MatrixDescriptor b = block_.machine.descriptor(right_address, leading, eight_lines);
        block_.machine.fence_products(acc.x);
        block_.machine.fence_products(left.x);
        FMHA_UNROLL
        for (int k = 0; k < fragments; ++k)
            block_.machine.multiply_registers(
                right.type, acc.x, left.x, 4 * k,
                b + (right.by_column ? along_lines(right, k)
                                     : k * group_depth(right.type) * SwizzledTile::line_bytes),
                adds || k > 0);
        block_.machine.commit_products(acc.x);
    }

    /// Returns when at most `under_way` products are, and `acc` is not one of them.
    template <auto Product, class Registers>
    FMHA_DEVICE void finish(Accumulator<Product, Registers>& acc, int under_way) {
        block_.machine.wait_products(under_way, acc.x);
    }

  private:
    static constexpr int eight_lines = 8 * SwizzledTile::line_bytes;
    static constexpr int unused = 16; ///< the hardware ignores the number

    Block block_;

    /// Bytes from the begin of a tile to its part for product `k`, where depth lies along its lines.
    FMHA_DEVICE static constexpr int along_lines(const StreamPlan& tile, int k) {
        const int at = k * group_depth(tile.type), block = SwizzledTile::block_elements(tile.type);
        return at / block * SwizzledTile::block_bytes(tile.lines) + at % block * element_bits(tile.type) / 8;
    }
};

} // namespace fmha::hip_target
