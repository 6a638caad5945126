#pragma once

#include "dispatcher/types/args.hpp"
#include "kernels/programs/device.hpp"

#include <cstdint>
#include <type_traits>

/// The kernels' masks and key-tile ranges (sections 10, 11.1).
namespace fmha::kernels {

/// Clamped, so that tile-relative positions fit 32-bit lanes; beyond ±2^29 every comparison inside a tile has
/// the same outcome.
FMHA_DEVICE constexpr std::int32_t tile_relative(std::int64_t position) {
    constexpr std::int64_t far = std::int64_t{1} << 29;
    return static_cast<std::int32_t>(position > far ? far : position < -far ? -far : position);
}

/// Row i sees keys i − y + 1 ≤ j < i + x (M-3), and of the first `sink` keys those below i + x, if i <
/// sink_rows.
struct Mask {
    std::int64_t x = 0, y = 0;
    std::int64_t sink = 0, sink_rows = 0;

    /// Coordinates of `mask` for logical lengths; a kernel of class `none` hides nothing, of class `causal`
    /// has no lower bound (M-6).
    FMHA_DEVICE static constexpr Mask of(const MaskArgs& mask, MaskClass kernel, bool sink_tokens,
                                         std::int64_t seqlen_q, std::int64_t seqlen_k) {
        Mask out{seqlen_k, seqlen_q, 0, 0}; // vacuous bounds
        if (kernel == MaskClass::none || mask.type == MaskType::no_mask) return out;
        if (mask.type == MaskType::window_generic) {
            out.x = mask.right + 1;
            out.y = mask.left + 1;
        } else {
            const std::int64_t anchor = mask.type == MaskType::bottom_right ? seqlen_k - seqlen_q : 0;
            if (mask.right >= 0) out.x = 1 + mask.right + anchor;
            if (mask.left >= 0) out.y = 1 + mask.left - anchor;
            if (sink_tokens && out.y < seqlen_q) {
                out.sink = mask.sink;
                out.sink_rows = seqlen_k;
            }
        }
        if (kernel == MaskClass::causal) {
            out.y = seqlen_q;
            out.sink = 0;
        }
        return out;
    }
    /// Whether rows [row0, row0 + rows) see all keys [key0, key0 + cols), where keys end at `key_count`. Bounds that
    /// a kernel of the class need not look at are vacuous. All but key0 stays the same from tile to tile, so that a loop computes little.
    FMHA_DEVICE constexpr bool shows_all(std::int64_t row0, std::int64_t rows, std::int64_t key0,
                                         std::int64_t cols, std::int64_t key_count, MaskClass kernel) const {
        if (kernel == MaskClass::none) return key0 <= key_count - cols;
        const std::int64_t end = row0 + x < key_count ? row0 + x : key_count;
        return key0 <= end - cols && (kernel == MaskClass::causal || key0 >= row0 + rows - y);
    }
};

/// Which key tiles a block of query rows visits: the tiles of the sink prefix, then those of the window.
struct KeyTiles {
    std::int64_t prefix_end = 0; ///< tiles [0, prefix_end) hold visible sink keys outside the window
    std::int64_t begin = 0, end = 0;

    /// Some of the tiles, by the number of those that are visited before.
    struct Range {
        int begin = 0, end = 0;
        FMHA_DEVICE constexpr bool has(int n) const { return begin <= n && n < end; }
    };

    FMHA_DEVICE constexpr std::int64_t first() const { return prefix_end > 0 ? 0 : begin; }
    FMHA_DEVICE constexpr std::int64_t next(std::int64_t tile) const {
        return tile + 1 == prefix_end ? begin : tile + 1;
    }
    FMHA_DEVICE constexpr int count() const {
        const std::int64_t window = end > begin ? end - begin : 0;
        return static_cast<int>(prefix_end + window);
    }
    /// The tile that is visited after `n` others.
    FMHA_DEVICE constexpr std::int64_t at(int n) const { return n < prefix_end ? n : begin + n - prefix_end; }

    /// Of the tiles, in the order in which they are visited, how many come until no row up to `last_row` sees a key any more.
    FMHA_DEVICE constexpr int count_until(const Mask& mask, std::int64_t last_row, std::int64_t n0) const {
        const std::int64_t end_key = last_row + mask.x;
        const std::int64_t own_end = end_key > 0 ? (end_key + n0 - 1) / n0 : 0;
        const std::int64_t window = (own_end < end ? own_end : end) - begin;
        return static_cast<int>(prefix_end + (window > 0 ? window : 0));
    }
    /// Of the tiles, in the order in which they are visited, how many come before the first with a key that a row from `first_row` on sees.
    FMHA_DEVICE constexpr int count_before(const Mask& mask, std::int64_t first_row, std::int64_t n0) const {
        const std::int64_t first_key = first_row - mask.y + 1;
        const std::int64_t hidden = first_key > 0 ? first_key / n0 - begin : 0;
        return mask.sink == 0 && hidden > 0 ? static_cast<int>(hidden) : 0;
    }
    /// The tiles of the window in which all of [row0, row0 + rows) see all `n0` keys, counted as they are visited:
    /// `Mask::shows_all` for all of them at once.
    FMHA_DEVICE constexpr Range seen_whole(const Mask& mask, std::int64_t row0, std::int64_t rows,
                                           std::int64_t key_count, std::int64_t n0, MaskClass kernel) const {
        const std::int64_t first_key = kernel == MaskClass::generic ? row0 + rows - mask.y : 0;
        const std::int64_t end_key = row0 + mask.x < key_count ? row0 + mask.x : key_count;
        const std::int64_t from = first_key > 0 ? (first_key + n0 - 1) / n0 : 0;
        const std::int64_t to = end_key > 0 ? end_key / n0 : 0;
        const auto step = [this](std::int64_t tile) {
            const std::int64_t in = tile < begin ? begin : tile < end ? tile : end;
            return static_cast<int>(prefix_end + in - begin);
        };
        return {step(from), step(to)};
    }

    /// Tiles of `n0` keys that some row of [row0, row0 + rows) sees; keys ≥ `key_count` do not exist.
    FMHA_DEVICE static constexpr KeyTiles of(const Mask& mask, std::int64_t row0, std::int64_t rows,
                                             std::int64_t key_count, std::int64_t n0) {
        const std::int64_t last_row = row0 + rows - 1;
        std::int64_t first_key = row0 - mask.y + 1;
        std::int64_t end_key = last_row + mask.x;
        if (first_key < 0) first_key = 0;
        if (end_key > key_count) end_key = key_count;
        std::int64_t sink_keys = row0 < mask.sink_rows ? mask.sink : 0;
        if (sink_keys > end_key) sink_keys = end_key;

        KeyTiles tiles;
        if (first_key < end_key) tiles = {0, first_key / n0, (end_key + n0 - 1) / n0};
        if (sink_keys > 0) {
            const std::int64_t prefix = (sink_keys + n0 - 1) / n0;
            if (first_key >= end_key)
                tiles = {0, 0, prefix};
            else if (prefix >= tiles.begin)
                tiles.begin = 0;
            else
                tiles.prefix_end = prefix;
        }
        return tiles;
    }
};

/// One tile of a loop over keys.
struct VisitedTile {
    std::int64_t number;
    bool exists = true;
    bool counted = false;
    std::uint32_t rows = 0; ///< where `counted`: how many of its keys exist
};

/// The tiles of a loop over keys, one after another. `counted`: by numbers of 32 bits, and what is the same in all of them is found ahead of
/// the loop. Scalar units of AMD's GPUs order no 64 bits, so that vector units would. `Counted` is bool, or std::false_type where a compiler shall
/// know early that nothing is counted: nvcc makes slower loops otherwise.
template <class Counted>
class TileVisits {
  public:
    /// `rows`: keys that loads may take for granted; `whole`: the tiles that nobody has to look at key by key.
    FMHA_DEVICE constexpr TileVisits(const KeyTiles& tiles, Counted counted, std::int64_t n0,
                                     std::int64_t rows, const KeyTiles::Range& whole)
        : tiles_(tiles), whole_(whole), n0_(static_cast<std::uint32_t>(n0)),
          last_rows_(rows_of_last(tiles, n0, rows)), count_(tiles.count()), tile_(tiles.first()),
          counted_(counted) {}

    FMHA_DEVICE constexpr bool any() const { return counted_ ? visited_ < count_ : tile_ < tiles_.end; }
    FMHA_DEVICE constexpr bool has_next() const {
        return counted_ ? visited_ + 1 < count_ : tiles_.next(tile_) < tiles_.end;
    }
    FMHA_DEVICE constexpr void advance() {
        tile_ = tiles_.next(tile_);
        ++visited_;
    }
    FMHA_DEVICE constexpr std::int64_t number() const { return tile_; }
    FMHA_DEVICE constexpr VisitedTile present() const { return {tile_, any(), counted_, rows(visited_)}; }
    FMHA_DEVICE constexpr VisitedTile next() const {
        return {tiles_.next(tile_), has_next(), counted_, rows(visited_ + 1)};
    }
    /// Whether all rows see all keys of the tile: by `shows_all` where it is not known yet.
    template <class ShowsAll>
    FMHA_DEVICE constexpr bool is_whole(ShowsAll shows_all) const {
        return counted_ ? whole_.has(visited_) : shows_all();
    }

  private:
    KeyTiles tiles_;
    KeyTiles::Range whole_;
    std::uint32_t n0_, last_rows_;
    std::int32_t count_;
    int visited_ = 0;
    std::int64_t tile_;
    Counted counted_;

    FMHA_DEVICE static constexpr std::uint32_t rows_of_last(const KeyTiles& tiles, std::int64_t n0,
                                                            std::int64_t rows) {
        if (tiles.count() == 0) return 0;
        const std::int64_t left = rows - (tiles.end - 1) * n0;
        return static_cast<std::uint32_t>(left < n0 ? left : n0);
    }
    FMHA_DEVICE constexpr std::uint32_t rows(std::int32_t visited) const {
        return visited + 1 < count_ ? n0_ : last_rows_;
    }
};

/// Visibility inside one tile of scores, in tile-relative rows and columns.
struct TileMask {
    std::int32_t lower = 0;   ///< column ≥ row + lower, or a sink
    std::int32_t upper = 0;   ///< column < row + upper
    std::int32_t columns = 0; ///< column < columns: keys that exist
    std::int32_t sink_columns = 0, sink_rows = 0;

    FMHA_DEVICE static constexpr TileMask of(const Mask& mask, std::int64_t row0, std::int64_t key0,
                                             std::int64_t key_count) {
        return {tile_relative(row0 - mask.y + 1 - key0), tile_relative(row0 + mask.x - key0),
                tile_relative(key_count - key0), tile_relative(mask.sink - key0),
                tile_relative(mask.sink_rows - row0)};
    }
    /// The columns that a row sees: [begin, end), and of those before `end` the ones below `sinks`.
    struct Columns {
        std::int32_t begin = 0, end = 0, sinks = 0;
    };

    /// Conditions that a kernel of the class need not look at are vacuous (`Mask::of`).
    FMHA_DEVICE constexpr Columns of_row(std::int32_t row, MaskClass kernel) const {
        if (kernel == MaskClass::none) return {0, columns, 0};
        const std::int32_t end = row + upper < columns ? row + upper : columns;
        if (kernel == MaskClass::causal) return {0, end, 0};
        const std::int32_t sinks = row < sink_rows ? sink_columns : 0;
        return {row + lower, end, sinks};
    }
    FMHA_DEVICE constexpr bool sees(std::int32_t row, std::int32_t column, MaskClass kernel) const {
        const Columns seen = of_row(row, kernel);
        if (kernel != MaskClass::generic) return column < seen.end;
        return (column < seen.end) & ((column >= seen.begin) | (column < seen.sinks));
    }
};

} // namespace fmha::kernels
