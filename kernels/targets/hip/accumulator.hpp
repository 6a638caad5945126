#pragma once

#include "kernels/targets/hip/block.hpp"

#include <cstdint>

namespace fmha::hip_target {

FMHA_DEVICE constexpr const AccumulatorPlan& accumulator_of(const AccumulatorPlan& plan) {
    return plan;
}
FMHA_DEVICE constexpr const AccumulatorPlan& accumulator_of(const ProductPlan& plan) {
    return plan.acc;
}

/// A tile of fp32 in the registers of a block. `Piece` of the block's plan, an AccumulatorPlan or the ProductPlan that it
/// is the result of, says who has which element.
template <auto Piece, class Registers>
struct Accumulator {
    Registers x;

    static constexpr auto piece = Piece;
};

/// One fp32 value for every row that a lane holds; lanes that share a row hold the same.
template <class Registers>
struct RowValues {
    Registers x;
};

/// A tile whose registers hold nothing yet.
template <auto Piece, class Block>
FMHA_DEVICE auto accumulator(const Block& block) {
    if constexpr (requires { (block.plan().*Piece).acc; }) {
        auto x = block.template registers<float, Piece, &ProductPlan::acc, &AccumulatorPlan::registers>();
        return Accumulator<Piece, decltype(x)>{x};
    } else {
        auto x = block.template registers<float, Piece, &AccumulatorPlan::registers>();
        return Accumulator<Piece, decltype(x)>{x};
    }
}

/// The layout of such a tile.
template <auto Piece, class Block>
FMHA_DEVICE const AccumulatorPlan& layout_of(const Block& block) {
    return accumulator_of(block.template piece<Piece>());
}

/// f(register, row slot, row, column) for every accumulator of a thread, or for the first of every `run` of them; row and
/// column without the lane's part.
template <auto Piece, class Block, class F>
FMHA_DEVICE void each_place(const Block& block, F f, int run = 1) {
    const AccumulatorPlan& acc = layout_of<Piece>(block);
    FMHA_UNROLL
    for (int row = 0; row < acc.row_tiles; ++row) {
        FMHA_UNROLL
        for (int col = 0; col < acc.column_tiles; ++col) {
            FMHA_UNROLL
            for (int r = 0; r < acc.fragment; r += run)
                f((row * acc.column_tiles + col) * acc.fragment + r,
                  row * acc.row_slots + acc.slot_of_register[r], row * acc.rows + acc.row_of_register[r],
                  col * acc.cols + acc.col_of_register[r]);
        }
    }
}

/// f(register, row slot, column, next column) for every second accumulator of a thread; the accumulator behind it belongs to the same
/// row. Columns are without the lane's part.
template <auto Piece, class Block, class F>
FMHA_DEVICE void each_pair(const Block& block, F f) {
    each_place<Piece>(
        block,
        [&](int at, int slot, int, int col) {
            const AccumulatorPlan& acc = layout_of<Piece>(block);
            const int r = at % acc.fragment;
            f(at, slot, col, col + acc.col_of_register[r + 1] - acc.col_of_register[r]);
        },
        2);
}

} // namespace fmha::hip_target
