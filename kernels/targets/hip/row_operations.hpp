#pragma once

#include "kernels/programs/alibi.hpp"
#include "kernels/programs/hidden_keys.hpp"
#include "kernels/programs/score_unit.hpp"
#include "kernels/targets/hip/accumulator.hpp"

#include <cstdint>

namespace fmha::hip_target {

/// Arithmetic on tiles in registers and on one value a row: all that a family without a matrix product needs. `Piece` of
/// the plan, a RowPlan, is that of all tiles which meet row vectors.
template <class Block, auto Piece>
class RowOperations {
    using Rows = RowValues<typename Block::template Registers<float, Piece, &RowPlan::registers>>;

    static constexpr float infinity = __builtin_inff();

  public:
    FMHA_DEVICE explicit RowOperations(const Block& block) : block_(block) {}

    FMHA_DEVICE Rows rows() const { return {block_.template registers<float, Piece, &RowPlan::registers>()}; }

    /// The value, opaque where computing again from it saves a register.
    FMHA_DEVICE float again(float value) const {
        return plan().computes_again ? block_.machine.local(value) : value;
    }

    FMHA_DEVICE void fill(Rows& rows, float value) {
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s) rows.x.at(thread, s) = value;
        });
    }
    template <class Tile>
    FMHA_DEVICE void fill(Tile& tile, float value) {
        map(tile, [&](float, int, int) { return value; });
    }

    /// `run` elements after one another, or in the order that a compiler chooses.
    template <int run = 0, class Tile, class F>
    FMHA_DEVICE void map(Tile& tile, F f) {
        const AccumulatorPlan& acc = layout_of<Tile::piece>(block_);
        block_.machine.each([&](int thread) {
            const int here = block_.machine.local_thread(thread);
            const int row0 = acc.row_of_wave(block_.wave(here)) + acc.row.of_lane(block_.lane(here));
            const int col0 = acc.col_of_wave(block_.wave(here)) + acc.col.of_lane(block_.lane(here));
            each_place<Tile::piece>(block_, [&](int at, int, int row, int col) {
                if constexpr (run > 0)
                    if (at % run == 0) block_.machine.arithmetic_in_order();
                tile.x.at(thread, at) = f(tile.x.at(thread, at), row0 + row, col0 + col);
            });
        });
    }
    template <class Tile>
    FMHA_DEVICE void hide(Tile& scores, const kernels::HiddenKeys& hidden) {
        map<4>(scores, hidden);
    }
    template <class F>
    FMHA_DEVICE void set_rows(Rows& to, F f) {
        block_.machine.each([&](int thread) {
            const int here = block_.machine.local_thread(thread);
            const int row0 = block_.wave(here) * plan().wave_rows + plan().row.of_lane(block_.lane(here));
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s)
                to.x.at(thread, s) =
                    f(row0 + s / plan().slots * plan().tile_rows + plan().row_of_slot[s % plan().slots]);
        });
    }
    template <class F>
    FMHA_DEVICE void map_rows(Rows& to, const Rows& a, const Rows& b, F f) {
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s)
                to.x.at(thread, s) = f(a.x.at(thread, s), b.x.at(thread, s));
        });
    }

    /// By pairs where the machine has them, also where the next step takes the products one by one.
    template <class Tile>
    FMHA_DEVICE void scale_all(Tile& tile, float factor) {
        if constexpr (Block::Machine::adds_pairs)
            block_.machine.each([&](int thread) {
                each_pair<Tile::piece>(block_, [&](int at, int, int, int) {
                    block_.machine.multiply_pair(&tile.x.at(thread, at), factor, factor);
                });
            });
        else
            map(tile, [factor](float x, int, int) { return x * factor; });
    }

    /// tanh(x) = 1 − 2 / (1 + exp(2x)): absolute error of a few 2^-24, and exact limits.
    template <class Tile>
    FMHA_DEVICE void soft_cap(Tile& scores, float inner, float outer) {
        constexpr float two_log2_e = 2.88539008177792681F;
        const float factor = inner * two_log2_e, twice = -2.0F * outer;
        if constexpr (Block::Machine::adds_pairs)
            block_.machine.each([&](int thread) {
                each_pair<Tile::piece>(block_, [&](int at, int, int, int) {
                    float x[2] = {scores.x.at(thread, at), scores.x.at(thread, at + 1)};
                    block_.machine.multiply_pair(x, factor, factor);
                    float sum[2] = {block_.machine.exp2(x[0]), block_.machine.exp2(x[1])};
                    block_.machine.add_pair(sum, 1.0F, 1.0F);
                    FMHA_UNROLL
                    for (int i = 0; i < 2; ++i)
                        scores.x.at(thread, at + i) = block_.machine.apart(
                            __builtin_fmaf(twice, block_.machine.reciprocal(sum[i]), outer));
                });
            });
        else
            map(scores, [&](float x, int, int) {
                const float share = block_.machine.reciprocal(1.0F + block_.machine.exp2(x * factor));
                return __builtin_fmaf(twice, share, outer);
            });
    }

    /// In fp32 throughout, so that an integer is converted once a row and not once an element.
    template <class Tile>
    FMHA_DEVICE void add_distances(Tile& scores, float factor, const kernels::TileAlibi& at) {
        const Rows reference = to_columns<Tile>([&](int r) { return at.of(r).key; });
        Rows reach = rows();
        set_rows(reach, [&](int r) { return static_cast<float>(at.of(r).reach); });
        each_distance(scores, reference, [&](float* score, const float* x, int thread, int slot) {
            FMHA_UNROLL
            for (int i = 0; i < 2; ++i)
                score[i] = block_.machine.apart(
                    __builtin_fmaf(factor, __builtin_fabsf(x[i]) - reach.x.at(thread, slot), score[i]));
        });
    }
    /// By pairs where the machine has them. Packed arithmetic has no absolute values, which a plane does without.
    template <class Tile>
    FMHA_DEVICE void add_plane(Tile& scores, float factor, const kernels::TilePlane& plane) {
        const float along = plane.along(factor);
        const Rows reference = to_columns<Tile>([&](int r) { return plane.reference(r); });
        each_distance(scores, reference, [&](float* score, const float* x, int, int) {
            if constexpr (Block::Machine::adds_products) {
                block_.machine.add_products(score, along, x);
            } else {
                FMHA_UNROLL
                for (int i = 0; i < 2; ++i) score[i] = __builtin_fmaf(along, x[i], score[i]);
            }
        });
    }

    template <class Tile>
    FMHA_DEVICE void raise_to_row_max(Rows& top, Rows& shrink, Tile& scores, float slack = 0.0F) {
        Rows largest = rows();
        map_rows(largest, top, top, [](float t, float) { return t; });
        take_maxima(largest, scores);
        raise(top, shrink, largest, slack);
    }
    template <class Tile>
    FMHA_DEVICE void raise_to_row_max(Rows& top, Rows& shrink, Tile& scores, float slack, float factor) {
        Rows largest = rows();
        fill(largest, -infinity);
        take_maxima(largest, scores);
        map_rows(largest, largest, top, [factor](float x, float t) { return maximum(t, x * factor); });
        raise(top, shrink, largest, slack);
    }
    template <class Tile>
    FMHA_DEVICE void raise_to_row_max(Rows& top, Rows& shrink, Tile& scores, Rows& reference,
                                      kernels::ScoreUnit unit) {
        Rows largest = rows();
        map_rows(largest, top, top, [](float t, float) { return t; });
        take_maxima(largest, scores);
        if constexpr (Block::template may<Piece>(&RowPlan::second_row_first)) {
            block_.machine.each([&](int thread) {
                if (!plan().second_row_first) return;
                float& first = largest.x.at(thread, 0);
                first = block_.machine.behind(largest.x.at(thread, 1), first);
            });
        }
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s) {
                const float before = reference.x.at(thread, s), now = unit.reference(largest.x.at(thread, s));
                top.x.at(thread, s) = largest.x.at(thread, s);
                reference.x.at(thread, s) = now;
                shrink.x.at(thread, s) = block_.machine.exp2(now - before);
            }
        });
    }
    template <class Tile>
    FMHA_DEVICE void exp2_minus(Tile& scores, const Rows& top) {
        block_.machine.each([&](int thread) {
            each_pair<Tile::piece>(block_, [&](int at, int slot, int, int) {
                const float reference = reference_of(top.x.at(thread, slot));
                float x[2] = {block_.machine.apart(scores.x.at(thread, at)),
                              block_.machine.apart(scores.x.at(thread, at + 1))};
                block_.machine.add_pair(x, -reference, -reference);
                scores.x.at(thread, at) = block_.machine.exp2(x[0]);
                scores.x.at(thread, at + 1) = block_.machine.exp2(x[1]);
            });
        });
    }
    template <class Tile>
    FMHA_DEVICE void exp2_minus(Tile& scores, const Rows& top, float factor) {
        block_.machine.each([&](int thread) {
            each_place<Tile::piece>(block_, [&](int at, int slot, int, int) {
                const float logit = block_.machine.product(scores.x.at(thread, at), factor);
                scores.x.at(thread, at) = block_.machine.exp2(logit - reference_of(top.x.at(thread, slot)));
            });
        });
    }
    template <class Tile>
    FMHA_DEVICE void exp2_minus(Tile& scores, const Rows& top, const Rows& reference,
                                kernels::ScoreUnit unit) {
        Rows factor = rows();
        map_rows(factor, top, top, [unit](float t, float) { return unit.factor(t); });
        block_.machine.each([&](int thread) {
            each_place<Tile::piece>(block_, [&](int at, int slot, int, int) {
                scores.x.at(thread, at) = block_.machine.exp2(__builtin_fmaf(
                    scores.x.at(thread, at), factor.x.at(thread, slot), reference.x.at(thread, slot)));
            });
        });
    }
    FMHA_DEVICE float top_weight(float top, kernels::ScoreUnit unit) const {
        const float score = reference_of(top);
        return block_.machine.exp2(__builtin_fmaf(score, unit.factor(score), unit.reference(score)));
    }
    FMHA_DEVICE void scale_rows(Rows& rows, const Rows& factor) {
        map_rows(rows, rows, factor, [](float a, float b) { return a * b; });
    }
    /// Once the maxima have settled, a wave's factors are all 1. The branch keeps the code before it from overlapping
    /// with the code after it.
    template <class Tile>
    FMHA_DEVICE void scale_rows(Tile& tile, const Rows& factor) {
        if (layout_of<Tile::piece>(block_).skips_ones) {
            const bool scales = block_.machine.any([&](int thread) {
                bool differs = false;
                FMHA_UNROLL
                for (int s = 0; s < plan().registers; ++s) differs |= factor.x.at(thread, s) != 1.0F;
                return differs;
            });
            if (!scales) return;
        }
        block_.machine.each([&](int thread) {
            each_place<Tile::piece>(block_, [&](int at, int slot, int, int) {
                tile.x.at(thread, at) *= factor.x.at(thread, slot);
            });
        });
    }
    /// The first of the lanes that share a row keeps its value, the others have 0.
    FMHA_DEVICE void split_rows(Rows& rows) {
        if (!plan().sums_in_parts) return;
        block_.machine.each([&](int thread) {
            if ((block_.lane(thread) & plan().sharing_lanes) == 0) return;
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s) rows.x.at(thread, s) = 0.0F;
        });
    }
    template <class Tile>
    FMHA_DEVICE void add_row_parts(Rows& total, Tile& scores) {
        Rows sum = sums_of_lanes(scores);
        if (!plan().sums_in_parts) combine(sum, [](float a, float b) { return a + b; });
        map_rows(total, total, sum, [](float a, float b) { return a + b; });
    }
    FMHA_DEVICE void join_rows(Rows& rows) {
        if (!plan().sums_in_parts) return;
        combine(rows, [](float a, float b) { return a + b; });
    }
    template <class Tile>
    FMHA_DEVICE void add_row_products(Rows& total, const Tile& a, const Tile& b) {
        Rows sum = rows();
        fill(sum, 0.0F);
        block_.machine.each([&](int thread) {
            each_place<Tile::piece>(block_, [&](int at, int slot, int, int) {
                sum.x.at(thread, slot) += a.x.at(thread, at) * b.x.at(thread, at);
            });
        });
        combine(sum, [](float x, float y) { return x + y; });
        map_rows(total, total, sum, [](float x, float y) { return x + y; });
    }
    template <class Tile>
    FMHA_DEVICE void add_scaled(Tile& acc, const Tile& tile, const Rows& factor) {
        block_.machine.each([&](int thread) {
            each_place<Tile::piece>(block_, [&](int at, int slot, int, int) {
                const float f = factor.x.at(thread, slot);
                if (f != 0.0F) acc.x.at(thread, at) += f * tile.x.at(thread, at);
            });
        });
    }
    template <class Acc, class Tile>
    FMHA_DEVICE void scale_and_add(Acc& acc, const Rows& factor, const Tile& tile) {
        block_.machine.each([&](int thread) {
            each_place<Acc::piece>(block_, [&](int at, int slot, int, int) {
                float& sum = acc.x.at(thread, at);
                sum = __builtin_fmaf(sum, factor.x.at(thread, slot), tile.x.at(thread, at));
            });
        });
    }
    FMHA_DEVICE float exp2(float x) const { return block_.machine.exp2(x); }
    FMHA_DEVICE float log(float x) const { return block_.machine.log(x); }
    FMHA_DEVICE float quotient(float a, float b) const { return block_.machine.quotient(a, b); }

  private:
    Block block_;

    FMHA_DEVICE const RowPlan& plan() const { return block_.template piece<Piece>(); }
    FMHA_DEVICE static float maximum(float a, float b) { return __builtin_fmaxf(a, b); }
    /// The number that exponents of a row are relative to: −∞ − −∞ would be NaN.
    FMHA_DEVICE static float reference_of(float top) { return top == -infinity ? 0.0F : top; }

    /// The largest element of a row, or `largest` where that is larger, for all lanes of the row.
    template <class Tile>
    FMHA_DEVICE void take_maxima(Rows& largest, Tile& scores) {
        if (plan().maxima_in_parts)
            take_maxima_in_parts(largest, scores);
        else
            block_.machine.each([&](int thread) {
                each_place<Tile::piece>(block_, [&](int at, int slot, int, int) {
                    largest.x.at(thread, slot) = maximum(largest.x.at(thread, slot), scores.x.at(thread, at));
                });
            });
        combine(largest, [this](float a, float b) { return block_.machine.larger(a, b); });
    }
    template <class Tile>
    FMHA_DEVICE void take_maxima_in_parts(Rows& largest, Tile& scores) {
        Rows odd = rows();
        map_rows(odd, largest, largest, [](float m, float) { return m; });
        block_.machine.each([&](int thread) {
            each_place<Tile::piece>(block_, [&](int at, int slot, int, int) {
                float& part = (at % 2 == 0 ? largest : odd).x.at(thread, slot);
                part = maximum(part, scores.x.at(thread, at));
            });
        });
        map_rows(largest, largest, odd, [](float a, float b) { return maximum(a, b); });
    }
    /// Raises `top` to `reached`, which is not below it.
    FMHA_DEVICE void raise(Rows& top, Rows& shrink, const Rows& reached, float slack) {
        block_.machine.each([&](int thread) {
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s) {
                const float before = top.x.at(thread, s), largest = reached.x.at(thread, s);
                const float now = slack > 0.0F && largest - before <= slack ? before : largest;
                shrink.x.at(thread, s) = now == before ? 1.0F : block_.machine.exp2(before - now);
                top.x.at(thread, s) = now;
            }
        });
    }

    /// Of every row the sum of a lane's part.
    template <class Tile>
    FMHA_DEVICE Rows sums_of_lanes(Tile& scores) {
        Rows sum = rows();
        fill(sum, 0.0F);
        if constexpr (Block::Machine::adds_pairs) {
            Rows odd = rows();
            fill(odd, 0.0F);
            block_.machine.each([&](int thread) {
                each_pair<Tile::piece>(block_, [&](int at, int slot, int, int) {
                    float x[2] = {sum.x.at(thread, slot), odd.x.at(thread, slot)};
                    block_.machine.add_pair(x, scores.x.at(thread, at), scores.x.at(thread, at + 1));
                    sum.x.at(thread, slot) = x[0];
                    odd.x.at(thread, slot) = x[1];
                });
            });
            map_rows(sum, sum, odd, [](float a, float b) { return a + b; });
        } else {
            block_.machine.each([&](int thread) {
                each_place<Tile::piece>(block_, [&](int at, int slot, int, int) {
                    sum.x.at(thread, slot) += scores.x.at(thread, at);
                });
            });
        }
        return sum;
    }

    /// Columns of rows, `column(row)`, seen from the first column of a lane.
    template <class Tile, class F>
    FMHA_DEVICE Rows to_columns(F column) {
        const AccumulatorPlan& acc = layout_of<Tile::piece>(block_);
        Rows from = rows();
        set_rows(from, [&](int r) { return static_cast<float>(column(r)); });
        block_.machine.each([&](int thread) {
            const int here = block_.machine.local_thread(thread);
            const auto col0 =
                static_cast<float>(acc.col_of_wave(block_.wave(here)) + acc.col.of_lane(block_.lane(here)));
            FMHA_UNROLL
            for (int s = 0; s < plan().registers; ++s) from.x.at(thread, s) -= col0;
        });
        return from;
    }
    /// add(two scores, their distances from the columns of their row, with signs, thread, row slot).
    template <class Tile, class F>
    FMHA_DEVICE void each_distance(Tile& scores, const Rows& columns, F add) {
        block_.machine.each([&](int thread) {
            each_pair<Tile::piece>(block_, [&](int place, int slot, int col, int next) {
                const float from = columns.x.at(thread, slot);
                float x[2] = {from, from};
                block_.machine.add_pair(x, -static_cast<float>(col), -static_cast<float>(next));
                add(&scores.x.at(thread, place), x, thread, slot);
            });
        });
    }

    /// Combines the values that the lanes of a row have of it.
    template <class F>
    FMHA_DEVICE void combine(Rows& rows, F f) {
        const int mask = plan().sharing_lanes;
        FMHA_UNROLL
        for (int bit = 1; bit < 64; bit *= 2)
            if ((mask & bit) != 0) block_.machine.fold(rows.x, bit, f);
    }
};

} // namespace fmha::hip_target
