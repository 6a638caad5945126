#pragma once

#include "kernels/programs/mask.hpp"

#include <cstdint>

/// The kernels' ALiBi (section 9).
namespace fmha::kernels {

/// Of one row, seen from some row and some key: β − β0 of key j is factor · (|key − j| − reach).
struct RowAlibi {
    std::int32_t key = 0, reach = 0;
    bool after_all = false, before_all = false; ///< the row sees no key behind its key, or none ahead of it
    bool looks_back = false; ///< the first visible key is farther from the key than the last

    /// The distance of the key from a diagonal.
    FMHA_DEVICE constexpr std::int32_t gap(std::int32_t diagonal) const {
        return diagonal < key ? key - diagonal : diagonal - key;
    }
};

/// β − β0 over a tile whose keys all lie on one side of their rows' keys: side · factor · (at + step · row − column).
struct TilePlane {
    std::int32_t side = 0; ///< 1: before the rows' keys, −1: behind them; 0: no plane
    std::int32_t step = 0, at = 0;

    /// The column at which the distance of a row is 0.
    FMHA_DEVICE constexpr std::int32_t reference(std::int32_t row) const { return at + (step & 3) * row; }
    /// `factor` with the sign of the side, 0 where there is no plane.
    FMHA_DEVICE constexpr float along(float factor) const {
        return side > 0 ? factor : side < 0 ? -factor : 0.0F;
    }
};

/// The planes of some rows, over tiles of keys on either side.
struct RowPlanes {
    std::int32_t last_before = 0, first_behind = 0; ///< where a tile begins that lies on one side
    std::int32_t at_before = 0, at_behind = 0;
    std::int32_t steps = 0;                   ///< two bits each
    bool straight = false;                    ///< there are such planes
    std::int32_t origin = 0, origin_step = 0; ///< `Alibi::origin` of a row is origin + origin_step · row

    FMHA_DEVICE constexpr TilePlane at(std::int64_t key0) const {
        const auto key = static_cast<std::int32_t>(key0);
        const bool before = key <= last_before;
        return {before                ? 1
                : key >= first_behind ? -1
                                      : 0,
                before ? steps : steps >> 2, (before ? at_before : at_behind) - key};
    }
};

/// Alibi seen from one tile: of a tile-relative row, in tile-relative columns.
struct TileAlibi {
    std::int32_t diagonal = 0;        ///< row + diagonal is where the row's diagonal is
    std::int32_t low = 0, high = 0;   ///< the row sees columns of [row + low, row + high]
    std::int32_t first = 0, last = 0; ///< that lie in [first, last],
    std::int32_t sink_rows = 0;       ///< those of the first rows from `first` on
    bool outwards = false;

    FMHA_DEVICE constexpr RowAlibi of(std::int32_t row) const {
        const std::int32_t on = row + diagonal;
        const bool moves = (row >= sink_rows) & (row + low > first);
        const std::int32_t begin = moves ? row + low : first, end = row + high < last ? row + high : last;
        const std::int32_t back = on - begin, ahead = end - on;
        RowAlibi at;
        at.after_all = ahead <= 0;
        at.before_all = back <= 0;
        at.looks_back = back > ahead;
        at.key = outwards ? on : at.after_all ? end : at.before_all ? begin : on;
        at.reach = !outwards ? 0 : at.looks_back ? back : ahead;
        return at;
    }
    FMHA_DEVICE constexpr float distance(std::int32_t row, std::int32_t column) const {
        const RowAlibi at = of(row);
        return __builtin_fabsf(static_cast<float>(at.key - column)) - static_cast<float>(at.reach);
    }
    /// Of rows [0, count) and tiles of `cols` keys. The first row and the last decide: there are planes only where the rows between them
    /// cannot depart from a line. Keys, reaches and gaps change by at most 1 from row to row, and a side that is no longer seen stays unseen.
    FMHA_DEVICE constexpr RowPlanes planes(std::int32_t count, std::int32_t cols, bool from_column) const {
        const std::int32_t n = count - 1;
        const RowAlibi top = of(0), bottom = of(n);
        const std::int32_t key_step = bottom.key - top.key, reach_step = bottom.reach - top.reach;
        const std::int32_t gap = top.gap(diagonal), gap_step = bottom.gap(n + diagonal) - gap;
        constexpr std::int32_t far = std::int32_t{1} << 30;
        RowPlanes planes;
        planes.straight =
            ((sink_rows > 0) == (sink_rows > n)) &
            (outwards ? (reach_step == n) | (reach_step == -n) |
                            ((reach_step == 0) & (top.looks_back == bottom.looks_back))
                      : (key_step == n) | ((key_step == 0) & ((gap_step == n) | (gap_step == -n))));
        const auto slope = [n](std::int32_t step) { return step == 0 ? 0 : step == n ? 1 : 2; };
        planes.last_before = !planes.straight ? -far : top.after_all ? far : top.key - cols + 1;
        planes.first_behind = !planes.straight ? far : bottom.before_all ? -far : bottom.key;
        planes.steps = slope(key_step - reach_step) | slope(key_step + reach_step) << 2;
        planes.at_before = top.key - top.reach;
        planes.at_behind = top.key + top.reach;
        const std::int32_t origin_step = from_column ? key_step : -gap_step - reach_step;
        planes.origin = from_column ? top.key : -gap - top.reach;
        planes.origin_step = origin_step > 0 ? 1 : origin_step < 0 ? -1 : 0;
        return planes;
    }
};

/// β(i, j) of A-2 in natural-log units, as β0(i) + factor · (|key(i) − j| − reach(i)). β0(i) is the largest β that row i sees:
/// the scores get the second summand alone, whose rounding grows with the distance from the keys that matter and not with the
/// position, and the LSE gets the first. With a positive slope the largest β is that of key(i), the visible one next to the
/// diagonal, and reach(i) is 0. With a negative slope it is that of the visible key farthest from the diagonal, which is
/// reach(i) from key(i), where the diagonal is. Under a plain causal mask key(i) is the last visible key, or the first.
struct Alibi {
    float slope = 0.0F, factor = 0.0F;
    bool from_column = false; ///< plain causal: slope · j, otherwise − slope · |i + shift − j|
    std::int64_t shift = 0;
    Mask window;
    std::int64_t rows = 0, keys = 0;

    /// `window` is that of `mask`.
    FMHA_DEVICE static constexpr Alibi of(const MaskArgs& mask, const Mask& window, float slope,
                                          std::int64_t seqlen_q, std::int64_t seqlen_k) {
        const bool anchored = mask.type == MaskType::top_left || mask.type == MaskType::bottom_right;
        const bool at_end = mask.type == MaskType::bottom_right || mask.type == MaskType::no_mask;
        // Of the bits, because GPUs have scalar instructions for integers that a block shares.
        const bool falls = __builtin_bit_cast(std::int32_t, slope) > 0;
        Alibi alibi;
        alibi.slope = slope;
        alibi.from_column = anchored && mask.left < 0 && mask.right == 0;
        alibi.factor = falls || !alibi.from_column ? -slope : slope;
        alibi.shift = alibi.from_column ? (falls ? seqlen_k : -seqlen_q) // beyond what rows see
                      : at_end          ? seqlen_k - seqlen_q
                                        : 0;
        alibi.window = window;
        alibi.rows = seqlen_q;
        alibi.keys = seqlen_k;
        return alibi;
    }
    /// With edges as `TileMask` has them, so that a GPU computes these once.
    FMHA_DEVICE constexpr TileAlibi tile(std::int64_t row0, std::int64_t key0) const {
        TileAlibi seen = from_row(row0, key0);
        seen.low = tile_relative(row0 - window.y + 1 - key0);
        seen.high = tile_relative(row0 + window.x - key0) - 1;
        return seen;
    }
    /// Of the rows of a tile that exist. All of it stays the same from key tile to key tile.
    FMHA_DEVICE constexpr RowPlanes planes(std::int64_t row0, std::int64_t count, std::int64_t cols) const {
        const std::int64_t left = rows - row0;
        return from_row(row0, 0).planes(static_cast<std::int32_t>(left < count ? left : count),
                                        static_cast<std::int32_t>(cols), from_column);
    }
    /// β0 of a row is slope · origin(row).
    FMHA_DEVICE constexpr float origin(std::int64_t i) const {
        const TileAlibi seen = from_row(i, 0);
        const RowAlibi at = seen.of(0);
        return static_cast<float>(from_column ? at.key : -at.gap(seen.diagonal) - at.reach);
    }

  private:
    FMHA_DEVICE constexpr TileAlibi from_row(std::int64_t row0, std::int64_t key0) const {
        const auto column = [key0](std::int64_t key) { return static_cast<std::int32_t>(key - key0); };
        return {column(row0 + shift),
                column(row0 - window.y + 1),
                column(row0 + window.x - 1),
                column(0),
                column(keys - 1),
                window.sink > 0 ? tile_relative(window.sink_rows - row0) : 0,
                __builtin_bit_cast(std::int32_t, factor) > 0};
    }
};

} // namespace fmha::kernels
