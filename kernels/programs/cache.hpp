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

    template <class Args>
    FMHA_DEVICE static CacheMatrices of(const KernelConfig& cfg, const Args& args, const Entry& entry,
                                        const FwdItem& item, std::int64_t hk, const KeyRange& keys) {
        CacheMatrices m{FwdMatrices::of(cfg, args, entry, item.b, item.h, hk),
                        Pages::of(args.place, item.b, entry.start_k),
                        hk,
                        keys.begin,
                        0,
                        {}};
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
    FMHA_DEVICE KeyTile tile(Ctx& ctx, std::int64_t t, bool exists) const {
        const std::int64_t n0 = ctx.cfg().algorithm.tile.n0;
        if (!exists) return {t * n0, begin, begin, 0, 0};
        KeyTile out = span(t, n0);
        const KeyPlace place = ctx.key_place(pages, out.first);
        out.page = place.page;
        out.slot = place.slot;
        return out;
    }
    FMHA_DEVICE Matrix keys(const KeyTile& tile) const { return of_tile(k, tile); }
    FMHA_DEVICE Matrix values(const KeyTile& tile) const { return of_tile(v, tile); }

  private:
    FMHA_DEVICE Matrix of_tile(Matrix matrix, const KeyTile& tile) const {
        const std::int64_t taken = tile.end - tile.first, left = begin + key_rows.size - shift - tile.first;
        matrix.origin = matrix.tensor.offset(tile.page, hk, tile.slot - tile.row, 0);
        matrix.rows = {tile.row + (left < taken ? left : taken), tile.row + taken, 0};
        return matrix;
    }
};

} // namespace fmha::kernels
