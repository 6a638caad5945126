#pragma once

#include "kernels/programs/cache.hpp"
#include "kernels/programs/matrix_place.hpp"
#include "kernels/programs/prefill_cache.hpp"

/// Sources of keys for the items of a warp-specialised launch: the feed fills stages from them, and the teams ask them about a tile.
/// The feed divides by the page size with a number that the launch has prepared.
namespace fmha::kernels {

/// The contents of a stage: the tile from row `row` of `matrix` on. The matrix lies at `place` of its tensor.
struct StagedTile {
    Matrix matrix;
    MatrixPlace place;
    std::int64_t row = 0;
};

/// Keys of an entry, one after another.
struct EntryKeys : FwdMatrices {
    MatrixPlace place;

    template <class Ctx>
    FMHA_DEVICE static Entry entry(Ctx& ctx, const FwdArgs& args, std::int64_t b, bool lengths_equal) {
        // To ask for every array whether it is there takes a team and the feed 75 instructions an item.
        if (ctx.cfg().signature.mode == Mode::batch && lengths_equal) {
            Shape shape = args.shape;
            shape.mode = Mode::batch;
            return ctx.entry(shape, LengthArrays{}, b);
        }
        return ctx.entry(args.shape, args.lengths, b);
    }
    template <class Ctx>
    FMHA_DEVICE static EntryKeys of(Ctx& ctx, const FwdArgs& args, const Entry& entry, const FwdItem& item,
                                    std::int64_t hk) {
        return {FwdMatrices::of(ctx.cfg(), args, entry, item.b, item.h, hk), {item.b, hk, entry.start_k}};
    }
    FMHA_DEVICE std::int64_t end_row() const { return k.rows.read; }
    FMHA_DEVICE static const Mask& in_rows(const Mask& mask) { return mask; }
    FMHA_DEVICE KeyTiles tiles(const Mask& mask, const QueryRows& rows, std::int64_t n0) const {
        return KeyTiles::of(mask, rows.first, rows.count, end_row(), n0);
    }
    template <class Ctx>
    FMHA_DEVICE StagedTile staged_keys(Ctx& ctx, std::int64_t t, const Divisor&) const {
        return {k, place, tile(ctx, {t}).row};
    }
    template <class Ctx>
    FMHA_DEVICE StagedTile staged_values(Ctx& ctx, std::int64_t t, const Divisor&) const {
        return {v, place, tile(ctx, {t}).row};
    }
};

/// Keys of an entry in pages, which hold whole tiles. The feed looks a page up before it waits for the stage, once for the keys of a tile and once
/// for its values, and divides by a number that the launch has prepared; teams never do. A stage ends with the last key of the tile, not of the page: behind it lies anything (P-5).
struct PagedKeys : CacheMatrices {
    template <class Ctx>
    FMHA_DEVICE static Entry entry(Ctx& ctx, const PagedKvArgs& args, std::int64_t b, bool) {
        return ctx.cached_entry(args.shape, args.lengths, args.place, b);
    }
    template <class Ctx>
    FMHA_DEVICE static PagedKeys of(Ctx& ctx, const PagedKvArgs& args, const Entry& entry,
                                    const FwdItem& item, std::int64_t hk) {
        return {{CacheMatrices::of(ctx, args, entry, item, hk, {0, entry.seqlen_k})}};
    }
    FMHA_DEVICE std::int64_t end_row() const { return key_rows.read; }

    template <class Ctx>
    FMHA_DEVICE StagedTile staged_keys(Ctx& ctx, std::int64_t t, const Divisor& of_page) const {
        return staged(ctx, k, t, of_page);
    }
    template <class Ctx>
    FMHA_DEVICE StagedTile staged_values(Ctx& ctx, std::int64_t t, const Divisor& of_page) const {
        return staged(ctx, v, t, of_page);
    }

  private:
    /// Tile t of a matrix, in numbers of 32 bits, because the feed has few registers. Its rows begin so many before its slot as `tile` has it.
    template <class Ctx>
    FMHA_DEVICE StagedTile staged(Ctx& ctx, Matrix matrix, std::int64_t t, const Divisor& of_page) const {
        if (pages.table == nullptr) __builtin_unreachable();
        const auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
        const std::int32_t n0 = ctx.cfg().algorithm.tile.n0, row = narrow(t) * n0, skipped = narrow(shift),
                           first = row > 0 ? row : skipped, rest = narrow(key_rows.size) - first,
                           count = rest < row + n0 - first ? rest : row + n0 - first;
        const KeyPlace at = ctx.key_place(PreparedPages(pages, of_page), first - skipped);
        const std::int32_t before = narrow(at.slot) - row;
        matrix.origin = matrix.tensor.offset(at.page, hk, before, 0);
        matrix.rows = {row + count, row + count, 0};
        return {matrix, {at.page, hk, before}, row};
    }
};

/// Keys of an entry in pages of any power of two from 8 on, slots one after another. A page that holds whole tiles is looked up as above. Of smaller
/// ones a stage has several, which the feed looks up as it fills it: the matrix has the table.
struct PrefillKeys : PrefillMatrices {
    template <class Ctx>
    FMHA_DEVICE static Entry entry(Ctx& ctx, const BatchPrefillArgs& args, std::int64_t b, bool) {
        return ctx.cached_entry(args.shape, args.lengths, args.place, b);
    }
    template <class Ctx>
    FMHA_DEVICE static PrefillKeys of(Ctx& ctx, const BatchPrefillArgs& args, const Entry& entry,
                                      const FwdItem& item, std::int64_t hk) {
        return {{PrefillMatrices::of(ctx, args, entry, item, hk)}};
    }
    FMHA_DEVICE std::int64_t end_row() const { return k.rows.size; }
    FMHA_DEVICE static const Mask& in_rows(const Mask& mask) { return mask; }

    template <class Ctx>
    FMHA_DEVICE StagedTile staged_keys(Ctx& ctx, std::int64_t t, const Divisor&) const {
        const KeyTile at = tile(ctx, {t});
        return {keys(at), place_of(at), at.row};
    }
    template <class Ctx>
    FMHA_DEVICE StagedTile staged_values(Ctx& ctx, std::int64_t t, const Divisor&) const {
        const KeyTile at = tile(ctx, {t});
        return {values(at), place_of(at), at.row};
    }

  private:
    /// Rows of a tile's matrices begin so many before its slot.
    FMHA_DEVICE MatrixPlace place_of(const KeyTile& at) const { return {at.page, hk, at.slot - at.row}; }
};

/// The keys of a launch with arguments `Args`, where there is a warp-specialised program.
template <class Args>
struct WsKeysOf;
template <>
struct WsKeysOf<FwdArgs> {
    using Type = EntryKeys;
};
template <>
struct WsKeysOf<PagedKvArgs> {
    using Type = PagedKeys;
};

template <>
struct WsKeysOf<BatchPrefillArgs> {
    using Type = PrefillKeys;
};

template <class Args>
concept HasTeams = requires {
    typename WsKeysOf<Args>::Type;
};

} // namespace fmha::kernels
