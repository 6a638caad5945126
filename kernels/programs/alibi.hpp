#pragma once

#include "kernels/programs/mask.hpp"

#include <cstdint>

/// The kernels' ALiBi (section 9).
namespace fmha::kernels {

/// β(i, j) of A-2 in natural-log units, as β0(i) + factor·|c(i) − j|. With a positive slope c(i) is the visible key with
/// the largest β, next to the diagonal, and β0(i) its β: the scores get the second summand alone, whose
/// rounding grows with the distance from the keys that matter and not with the position, and the LSE gets the first. With
/// a negative slope β0 is 0.
struct Alibi {
    float slope = 0.0F, factor = 0.0F;
    bool from_column = false; ///< plain causal: slope · j, otherwise − slope · |i + shift − j|
    std::int64_t shift = 0;
    std::int64_t nearest = 0; ///< c(i) = i + nearest, but not outside [first, last]
    std::int64_t first = 0, last = 0;

    /// `window` is that of `mask`.
    FMHA_DEVICE static constexpr Alibi of(const MaskArgs& mask, const Mask& window, float slope,
                                          std::int64_t seqlen_q, std::int64_t seqlen_k) {
        const bool anchored = mask.type == MaskType::top_left || mask.type == MaskType::bottom_right;
        const bool at_end = mask.type == MaskType::bottom_right || mask.type == MaskType::no_mask;
        Alibi alibi;
        alibi.slope = slope;
        alibi.from_column = anchored && mask.left < 0 && mask.right == 0;
        alibi.shift = at_end ? seqlen_k - seqlen_q : 0;
        alibi.factor = slope > 0.0F || !alibi.from_column ? -slope : slope;
        if (slope > 0.0F) {
            alibi.nearest = alibi.from_column            ? window.x - 1
                            : alibi.shift > window.x - 1 ? window.x - 1
                            : alibi.shift < 1 - window.y ? 1 - window.y
                                                         : alibi.shift;
            alibi.last = seqlen_k - 1;
        } else if (!alibi.from_column) {
            alibi.nearest = alibi.shift;
            alibi.first = -seqlen_q - seqlen_k;
            alibi.last = seqlen_q + seqlen_k;
        }
        return alibi;
    }
    FMHA_DEVICE constexpr std::int64_t reference_key(std::int64_t row) const {
        const std::int64_t key = row + nearest;
        return key < first ? first : key > last ? last : key;
    }
    /// β0 of a row is slope · origin(row).
    FMHA_DEVICE constexpr float origin(std::int64_t row) const {
        if (!(slope > 0.0F)) return 0.0F;
        const std::int64_t key = reference_key(row);
        if (from_column) return static_cast<float>(key);
        const std::int64_t distance = row + shift - key;
        return static_cast<float>(distance < 0 ? distance : -distance);
    }
};

/// Alibi seen from one tile: |c(i) − j| as a function of tile-relative row and column.
struct TileAlibi {
    std::int32_t nearest = 0, first = 0, last = 0;

    FMHA_DEVICE static constexpr TileAlibi of(const Alibi& alibi, std::int64_t row0, std::int64_t key0) {
        return {static_cast<std::int32_t>(row0 + alibi.nearest - key0),
                static_cast<std::int32_t>(alibi.first - key0), static_cast<std::int32_t>(alibi.last - key0)};
    }
    /// The column of c(i), which may lie outside the tile.
    FMHA_DEVICE constexpr std::int32_t reference(std::int32_t row) const {
        std::int32_t key = row + nearest;
        key = key < first ? first : key > last ? last : key;
        return key;
    }
    FMHA_DEVICE constexpr float distance(std::int32_t row, std::int32_t column) const {
        return __builtin_fabsf(static_cast<float>(reference(row) - column));
    }
};

} // namespace fmha::kernels
