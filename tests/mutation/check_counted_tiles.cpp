// Tiles that are counted (TileVisits) have matrices of their own: the same elements as those of all tiles, which hosts have.

#include "kernels/programs/cache.hpp"
#include "kernels/programs/prefill_cache.hpp"
#include "tests/mutation/checks.hpp"
#include "tests/mutation/tensors.hpp"

#include <array>
#include <type_traits>

namespace fmha::test {
namespace {

using kernels::Entry;
using kernels::Matrix;

constexpr std::int64_t b = 3, h = 5, hk = 2;
constexpr kernels::FwdItem item{b, h, 0, 0};

CacheContext context(std::int16_t n0, bool padded = true) {
    CacheContext ctx;
    ctx.config.algorithm.tile = {.m0 = 16, .n0 = n0, .n1 = 4};
    ctx.config.algorithm.pad = {true, padded, 1, 1};
    ctx.config.signature.mask = MaskClass::generic;
    return ctx;
}

template <class Args>
Args args_of() {
    Args args;
    args.shape.hdim_q = 16;
    args.shape.hdim_v = 24;
    args.q = tensor(1);
    args.k = tensor(2);
    args.v = tensor(3);
    args.bias = tensor(6);
    return args;
}

/// `own` has `rows` rows, which are those of `all` from `row` on.
bool has_rows(const Matrix& own, const Matrix& all, std::int64_t row, std::int64_t rows) {
    return own.rows.size == rows && own.rows.read == rows && own.offset(1, 2) == all.offset(row + 1, 2);
}
bool has_scales(const Matrix& own, const Matrix& all, std::int64_t row) {
    return own.block_scales().offset(0, 1) == all.block_scales().offset(row / all.scales.row_block, 1);
}

/// The visits are those of `tiles`, each with the rows, the columns and the mask that it has by its number.
template <class In>
bool same_tiles(CacheContext& ctx, const In& in, const kernels::Mask& mask, const kernels::KeyTiles& tiles) {
    const Tile& tile = ctx.config.algorithm.tile;
    auto visits = in.visits(tiles, ctx.config, mask, 0, true);
    for (std::int64_t t = tiles.first(); t < tiles.end; t = tiles.next(t), visits.advance()) {
        if (!visits.any() || visits.number() != t) return false;
        const auto one = in.tile(ctx, {t}), own = in.tile(ctx, visits.present());
        const std::int64_t rows = in.keys(one).rows.read - one.row, keys = rows < tile.n0 ? rows : tile.n0;
        if (own.row != 0 || own.first != one.first || own.end != one.end) return false;
        if (one.column() != one.first || own.column() != 0) return false;
        if (!has_rows(in.keys(own), in.keys(one), one.row, keys)) return false;
        if (!has_rows(in.values(own), in.values(one), one.row, keys)) return false;
        const Matrix bias = own.columns_of(in.bias);
        if (bias.cols.read != keys || bias.offset(1, 2) != in.bias.offset(1, one.first + 2)) return false;
        if (one.columns_of(in.bias).offset(1, 2) != in.bias.offset(1, 2)) return false;
        const bool whole = mask.shows_all(0, tile.m0, one.first, tile.n0, one.end, ctx.config.signature.mask);
        if (visits.is_whole([] { return false; }) != whole) return false;
        if (visits.has_next() || std::is_same_v<In, kernels::FwdMatrices>) continue;
        const auto none = in.tile(ctx, visits.next());
        if (none.row != 0 || none.first != none.end) return false;
    }
    return !visits.any();
}

std::array<kernels::Mask, 8> masks(std::int64_t keys) {
    return {{kernels::Mask{keys, 16, 0, 0}, kernels::Mask{3, 16, 0, 0}, kernels::Mask{9, -2, 0, 0},
             kernels::Mask{keys + 1, 13, 0, 0}, kernels::Mask{keys + 1, -6, 2, 100},
             kernels::Mask{keys + 1, -6, 3, 100}, kernels::Mask{keys + 30, -6, 4, 100},
             kernels::Mask{keys + 30, -6, 5, 100}}};
}

bool forward_tiles() {
    for (const std::int64_t keys : {1, 4, 7, 13, 24})
        for (const bool padded : {true, false})
            for (const kernels::Mask& mask : masks(keys)) {
                CacheContext ctx = context(4, padded);
                const auto in =
                    kernels::FwdMatrices::of(ctx.config, args_of<FwdArgs>(), {6, keys, 20, 30}, b, h, hk);
                const auto tiles = kernels::KeyTiles::of(mask, 0, 6, in.k.rows.read, 4);
                if (!same_tiles(ctx, in, mask, tiles)) return false;
            }
    return true;
}

/// Of micro-scaled tensors a tile begins a block of scales.
bool scaled_tiles() {
    CacheContext ctx = context(32);
    ctx.config.signature.qscale = QScale::mx;
    auto args = args_of<FwdArgs>();
    args.quant.q_descale = tensor(11);
    args.quant.k_descale = tensor(12);
    args.quant.v_descale = tensor(13);
    const auto in = kernels::FwdMatrices::of(ctx.config, args, {6, 90, 20, 30}, b, h, hk);
    for (std::int64_t t = 0; t < 3; ++t) {
        const auto own = in.tile(ctx, {t, true, true, 26});
        if (!has_scales(in.keys(own), in.k, 32 * t) || !has_scales(in.values(own), in.v, 32 * t))
            return false;
    }
    return true;
}

bool cache_tiles() {
    constexpr std::int32_t table[] = {7, 3, 9, 1, 8, 2, 6, 5};
    for (const std::int64_t page_size : {0, 4, 8, 12})
        for (const std::int64_t start : {0, 1, 3, 6})
            for (const std::int64_t keys : {1, 5, 8, 13})
                for (std::int64_t begin = 0; begin < keys; begin += 3)
                    for (const std::int64_t end : {begin + 1, keys})
                        for (const bool padded : {true, false})
                            for (const kernels::Mask& mask : masks(keys)) {
                                CacheContext ctx = context(4, padded);
                                auto args = args_of<PagedKvArgs>();
                                if (page_size > 0) {
                                    args.place.block_table = table;
                                    args.place.page_size = page_size;
                                    args.place.is_gappy = true;
                                }
                                const auto in = kernels::CacheMatrices::of(ctx, args, {2, keys, 0, start},
                                                                           {0, 1, 0, 0}, hk, {begin, end});
                                if (!same_tiles(ctx, in, mask, in.tiles(mask, {0, 2}, 4))) return false;
                            }
    return true;
}

/// Rows in pages that are smaller than a tile are looked up by their numbers among all rows.
bool prefill_tiles() {
    constexpr std::int32_t table[] = {4, 2, 7, 1, 3, 9}, indptr[] = {0, 0, 0, 0, 6};
    for (const std::int32_t page_size : {16, 64})
        for (const KvLayout layout : {KvLayout::linear, KvLayout::vectorized})
            for (const std::int64_t keys : {5, 32, 90})
                for (const kernels::Mask& mask : masks(keys)) {
                    CacheContext ctx = context(32);
                    ctx.config.signature.page_size = page_size;
                    ctx.config.signature.kv_layout = layout;
                    auto args = args_of<BatchPrefillArgs>();
                    args.place.kv_page_indices = table;
                    args.place.kv_indptr = indptr;
                    const auto in = kernels::PrefillMatrices::of(ctx, args, {6, keys, 20, 30}, item, hk);
                    const auto tiles = in.tiles(mask, {0, 6}, 32);
                    if (!in.gathers && !same_tiles(ctx, in, mask, tiles)) return false;
                    if (!in.gathers) continue;
                    const auto one = in.tile(ctx, {1}), own = in.tile(ctx, {1, true, true, 32});
                    if (own.row != 32 || one.row != 32 || own.column() != 0 || own.rows != 32 ||
                        in.keys(own).rows.read != in.keys(one).rows.read)
                        return false;
                }
    return true;
}

} // namespace

bool counted_tiles_are_right() {
    return forward_tiles() && scaled_tiles() && cache_tiles() && prefill_tiles();
}

} // namespace fmha::test
