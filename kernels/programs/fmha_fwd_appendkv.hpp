#pragma once

#include "kernels/programs/decisions.hpp"
#include "kernels/programs/program.hpp"

namespace fmha::kernels {

/// Pairs of channels that a block rotates at a time.
inline constexpr int rotary_pairs = 32;

/// The rows that one block writes: query rows [tile · m0, …) of one (entry, query head), which it rotates in place, or new keys and values
/// [tile · n0, …) of one (entry, KV head).
struct AppendItem {
    std::int64_t b = 0, h = 0, tile = 0;
    bool keys = false;
};
FMHA_FIELDS(AppendItem, b, h, tile, keys)

/// RoPE (V-4) of the rows of one (entry, head): where their angles are, and their channels as two matrices, the first and the
/// second ones of all pairs.
struct Rotary {
    std::int64_t pairs = 0, step = 1,
                 partner = 0; ///< channels from pair to pair, and from a first to its second one
    Matrix cos, sin;

    /// The angles of row 0 stand at `position`; those of the next rows follow, or are the same.
    FMHA_DEVICE static Rotary of(const RopeArgs& rope, std::int64_t position, bool advance, Extent rows) {
        Rotary out;
        out.pairs = rope.rotary_dim / 2;
        out.step = rope.type == Rope::interleaved ? 2 : 1;
        out.partner = rope.type == Rope::interleaved ? 1 : out.pairs;
        out.cos = out.angles(rope.cos, position, advance, rows);
        out.sin = out.angles(rope.sin, position, advance, rows);
        return out;
    }
    FMHA_DEVICE Extent columns() const { return {pairs, pairs, pairs}; }
    /// Of a matrix whose columns are channels.
    FMHA_DEVICE Matrix firsts(Matrix channels) const {
        channels.tensor.col_stride *= step;
        channels.cols = columns();
        return channels;
    }
    FMHA_DEVICE Matrix seconds(Matrix channels) const {
        channels.origin += partner * channels.tensor.col_stride;
        return firsts(channels);
    }

  private:
    FMHA_DEVICE Matrix angles(const TensorView& table, std::int64_t position, bool advance,
                              Extent rows) const {
        Matrix out = matrix_of(table, 0, 0, position, rows, columns());
        if (!advance) out.tensor.row_stride = 0;
        return out;
    }
};

/// Rows [to_row, …) of `to` become rows [row, …) of `from`, rotated; as many as both have and a block holds. `from` and `to` may be
/// the same. A pair is rotated in fp32 and rounded once. The tiles have a column for every pair:
///
/// - first, second: the two channels
/// - cosine, sine: their angles
template <class Ctx>
FMHA_DEVICE void rotate_rows(Ctx& ctx, const Rotary& rotary, const Matrix& to, std::int64_t to_row,
                             const Matrix& from, std::int64_t row) {
    auto first = ctx.first(), second = ctx.second();
    auto cosine = ctx.cosines(), sine = ctx.sines();
    FMHA_NO_UNROLL
    for (std::int64_t pair = 0; pair < rotary.pairs; pair += rotary_pairs) {
        ctx.load(first, rotary.firsts(from), row, pair);
        ctx.load(second, rotary.seconds(from), row, pair);
        ctx.load(cosine, rotary.cos, row, pair);
        ctx.load(sine, rotary.sin, row, pair);
        ctx.rotate(first, second, cosine, sine);
        ctx.store(rotary.firsts(to), first, to_row, pair);
        ctx.store(rotary.seconds(to), second, to_row, pair);
    }
}

/// Append-KV (V-1 to V-7): new keys, rotated or as they are, and new values go behind those of the cache, and queries are rotated
/// in place. Rows and channels that are not rotated are copied bit for bit. Elements that would lie outside the cache or its pages are not
/// written (V-3).
template <class Ctx>
FMHA_DEVICE void fmha_fwd_appendkv(Ctx& ctx, const AppendKvArgs& args, const AppendItem& item) {
    const auto& cfg = ctx.cfg();
    const Shape& shape = args.shape;
    const Granules granules = Granules::of(cfg);
    const bool rotates = cfg.signature.rope != Rope::none;
    const std::int64_t cached = ctx.cached(args, item.b);
    const auto whole = [](std::int64_t size, std::int64_t granule) {
        const std::int64_t written = Extent::of(size, granule).written;
        return Extent{written, written, written};
    };
    const Extent hdim_q = whole(shape.hdim_q, granules.hdim_q);
    if (cached < 0) return;

    if (!item.keys) {
        const Extent rows = whole(shape.seqlen_q, granules.seqlen_q);
        const Matrix q = matrix_of(args.q, item.b, item.h, 0, rows, hdim_q);
        const std::int64_t row = item.tile * cfg.algorithm.tile.m0;
        rotate_rows(
            ctx,
            Rotary::of(ctx.rope(args.rope), ctx.rotary_position(cached), ctx.queries_advance(args), rows), q,
            row, q, row);
        return;
    }

    const Extent hdim_v = whole(shape.hdim_v, granules.hdim_v);
    const Pages pages = ctx.cache_pages(args.place, item.b);
    const std::int64_t room = ctx.cache_room(args) - cached, begin = item.tile * cfg.algorithm.tile.n0;
    std::int64_t end = whole(args.seqlen_knew, granules.seqlen_k).size;
    end = end < begin + cfg.algorithm.tile.n0 ? end : begin + cfg.algorithm.tile.n0;
    end = end < room ? end : room;
    // The keys of one page after those of another.
    FMHA_NO_UNROLL
    for (std::int64_t key = begin; key < end;) {
        const KeyPlace place = pages.at(cached + key);
        const bool paged = pages.table != nullptr;
        const std::int64_t here = paged ? args.place.page_size - place.slot : end - key;
        const std::int64_t stop = end - key < here ? end : key + here;
        const Extent from_rows{stop, stop, stop}, to_rows{stop - key, stop - key, stop - key};
        if (!paged || (place.page >= 0 && place.page < args.place.page_count)) {
            const Matrix k_new = matrix_of(args.k_new, item.b, item.h, 0, from_rows, hdim_q);
            const Matrix v_new = matrix_of(args.v_new, item.b, item.h, 0, from_rows, hdim_v);
            const Matrix k = matrix_of(args.k, place.page, item.h, place.slot, to_rows, hdim_q);
            const Matrix v = matrix_of(args.v, place.page, item.h, place.slot, to_rows, hdim_v);
            if (rotates)
                rotate_rows(ctx,
                            Rotary::of(ctx.rope(args.rope), ctx.rotary_position(cached), true, from_rows), k,
                            0, k_new, key);
            ctx.copy(k, 0, k_new, key, rotates ? args.rope.rotary_dim : 0);
            ctx.copy(v, 0, v_new, key, 0);
        }
        key = stop;
    }
}

/// The blocks of one launch, numbered from 0: those of the queries, if they are rotated, before those of the new keys.
struct AppendGrid {
    std::int64_t heads_q, heads_k, q_tiles, k_tiles, q_blocks, k_blocks;

    FMHA_DEVICE constexpr AppendGrid(const KernelConfig& config, const AppendKvArgs& args)
        : heads_q(args.shape.nhead_q), heads_k(args.shape.nhead_k),
          q_tiles(tiles(args.shape.seqlen_q, config.algorithm.tile.m0)),
          k_tiles(tiles(args.seqlen_knew, config.algorithm.tile.n0)),
          q_blocks(config.signature.rope != Rope::none && args.q.present()
                       ? args.shape.batch * heads_q * q_tiles
                       : 0),
          k_blocks(args.shape.batch * heads_k * k_tiles) {}

    FMHA_DEVICE constexpr std::int64_t size() const { return q_blocks + k_blocks; }
    FMHA_DEVICE constexpr AppendItem operator[](std::int64_t n) const {
        const bool keys = n >= q_blocks;
        const std::int64_t block = keys ? n - q_blocks : n, rows = keys ? k_tiles : q_tiles,
                           heads = keys ? heads_k : heads_q;
        return {block / rows / heads, block / rows % heads, block % rows, keys};
    }

  private:
    FMHA_DEVICE static constexpr std::int64_t tiles(std::int64_t extent, std::int64_t tile) {
        return (extent + tile - 1) / tile;
    }
};

template <>
struct Program<KernelFamily::fwd_appendkv> {
    using Args = AppendKvArgs;
    using Item = AppendItem;
    using Grid = AppendGrid;
    static constexpr bool has_products = false;

    static std::int64_t rows(const KernelConfig& config, const AppendKvArgs& args, const AppendItem& item) {
        const std::int64_t tile = item.keys ? config.algorithm.tile.n0 : config.algorithm.tile.m0;
        const std::int64_t left = (item.keys ? args.seqlen_knew : args.shape.seqlen_q) - item.tile * tile;
        return left < tile ? left : tile;
    }
    template <class Ctx>
    FMHA_DEVICE static void run(Ctx& ctx, const AppendKvArgs& args, const AppendItem& item) {
        fmha_fwd_appendkv(ctx, args, item);
    }
};

} // namespace fmha::kernels
