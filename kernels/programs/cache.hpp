#pragma once

#include "kernels/programs/key_loop.hpp"

namespace fmha::kernels {

/// The keys that the loop works on, where those of a block lie in a cache. Tiles of pages begin at multiples of n0 among
/// the slots, so that none lies in two pages; the first one begins with the first key of the block, hence may be short.
struct CacheMatrices : FwdMatrices {
    static constexpr bool looks_up = true;

    Pages pages;
    std::int64_t hk = 0;
    std::int64_t begin = 0; ///< the first key of the block
    std::int64_t shift = 0; ///< its slot of a page modulo n0
    Extent key_rows;        ///< keys of the block, as rows of tiles that are all n0 long, from `shift` on

    template <class Ctx, class Args>
    FMHA_DEVICE static CacheMatrices of(Ctx& ctx, const Args& args, const Entry& entry, const FwdItem& item,
                                        std::int64_t hk, const KeyRange& keys) {
        const KernelConfig& cfg = ctx.cfg();
        CacheMatrices m{FwdMatrices::of(cfg, args, entry, item.b, item.h, hk),
                        Pages::of(args.place, item.b, entry.start_k),
                        hk,
                        keys.begin,
                        0,
                        {}};
        // Every tile asks for their strides.
        m.k.tensor = with_kept_strides(ctx, m.k.tensor);
        m.v.tensor = with_kept_strides(ctx, m.v.tensor);
        if (m.pages.table != nullptr) m.shift = (m.pages.first + keys.begin) % cfg.algorithm.tile.n0;
        // Keys that loads take for granted are those behind the sequence, not those of the next split.
        const std::int64_t from = m.shift - keys.begin;
        const bool last = keys.end == entry.seqlen_k;
        m.key_rows = {keys.end + from, (last ? m.k.rows.read : keys.end) + from, 0};
        return m;
    }

    /// Rows become those of `heads` query heads.
    template <class Ctx>
    FMHA_DEVICE void pack(Ctx& ctx, std::int64_t heads) {
        q = ctx.across_heads(q, heads, 1);
        if (ctx.cfg().signature.bias == BiasType::elementwise) bias = ctx.across_heads(bias, heads, 1);
    }

    /// The tiles that rows [first, first + count) see under `mask`; none without a key.
    FMHA_DEVICE KeyTiles tiles(const Mask& mask, const QueryRows& rows, std::int64_t n0) const {
        if (key_rows.size <= shift) return {};
        return KeyTiles::of(in_rows(mask), rows.first, rows.count, key_rows.size, n0);
    }
    template <class Counted>
    FMHA_DEVICE TileVisits<Counted> visits(const KeyTiles& tiles, const KernelConfig& cfg, const Mask& mask,
                                           std::int64_t row0, Counted counted) const {
        const Tile& tile = cfg.algorithm.tile;
        KeyTiles::Range whole;
        if (counted)
            whole =
                tiles.seen_whole(in_rows(mask), row0, tile.m0, key_rows.read, tile.n0, cfg.signature.mask);
        // The first tile has less than n0 keys there.
        if (shift > 0 && tiles.first() == 0 && whole.begin == 0) whole.begin = 1;
        return {tiles, counted, tile.n0, key_rows.read, whole};
    }
    /// A mask of keys as one of rows of tiles.
    FMHA_DEVICE Mask in_rows(Mask mask) const {
        const std::int64_t from = shift - begin;
        mask.x += from;
        mask.y -= from;
        mask.sink = mask.sink > begin ? mask.sink + from : 0;
        return mask;
    }

    /// Tile t, which has a key, before it is looked up.
    FMHA_DEVICE KeyTile span(std::int64_t t, std::int64_t n0) const {
        const std::int64_t row = t * n0;
        const std::int64_t next = row + n0 < key_rows.read ? row + n0 : key_rows.read;
        return {row, t > 0 ? begin + row - shift : begin, begin + next - shift, 0, 0};
    }
    template <class Ctx>
    FMHA_DEVICE KeyTile tile(Ctx& ctx, const VisitedTile& visited) const {
        const std::int64_t n0 = ctx.cfg().algorithm.tile.n0, t = visited.number;
        if (!visited.exists) {
            KeyTile none;
            none.row = visited.counted ? 0 : t * n0;
            none.first = none.end = begin;
            none.apart = visited.counted;
            return none;
        }
        KeyTile out = span(t, n0);
        if (visited.counted) {
            const auto before = static_cast<std::uint32_t>(t == 0 ? shift : 0);
            out.row = 0;
            out.apart = true;
            out.rows = visited.rows - before;
            out.end = out.first + out.rows;
        }
        const KeyPlace place = ctx.key_place(pages, out.first);
        out.page = place.page;
        out.slot = place.slot;
        return out;
    }
    FMHA_DEVICE Matrix keys(const KeyTile& tile) const { return of_tile(k, tile); }
    FMHA_DEVICE Matrix values(const KeyTile& tile) const { return of_tile(v, tile); }

  private:
    template <class Ctx>
    FMHA_DEVICE static TensorView with_kept_strides(Ctx& ctx, TensorView tensor) {
        tensor.batch_stride = ctx.kept(tensor.batch_stride);
        tensor.head_stride = ctx.kept(tensor.head_stride);
        tensor.row_stride = ctx.kept(tensor.row_stride);
        tensor.col_stride = ctx.kept(tensor.col_stride);
        return tensor;
    }
    FMHA_DEVICE Matrix of_tile(Matrix matrix, const KeyTile& tile) const {
        if (tile.apart) {
            matrix.origin = matrix.tensor.offset(tile.page, hk, tile.slot, 0);
            matrix.rows = {tile.rows, tile.rows, 0};
            return matrix;
        }
        const std::int64_t taken = tile.end - tile.first, left = begin + key_rows.size - shift - tile.first;
        matrix.origin = matrix.tensor.offset(tile.page, hk, tile.slot - tile.row, 0);
        matrix.rows = {tile.row + (left < taken ? left : taken), tile.row + taken, 0};
        return matrix;
    }
};

} // namespace fmha::kernels
