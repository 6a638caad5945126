#pragma once

#include "dispatcher/types/args/toy.hpp"
#include "kernels/programs/matrix_place.hpp"
#include "kernels/programs/program.hpp"

namespace fmha::kernels {

/// What one block computes: query rows [q_tile·m0, …) of one (entry, head).
struct ToyItem {
    std::int64_t b = 0, h = 0, q_tile = 0;
};
FMHA_FIELDS(ToyItem, b, h, q_tile)

/// O = G · Q with G query heads a KV head.
template <class Ctx>
FMHA_DEVICE void fmha_toy(Ctx& ctx, const ToyArgs& args, const ToyItem& item) {
    const auto& cfg = ctx.cfg();
    const Entry entry = ctx.entry(args.shape, args.lengths, item.b);
    const std::int64_t row0 = item.q_tile * cfg.algorithm.tile.m0;
    if (row0 >= entry.seqlen_q) return;
    const Granules granules = Granules::of(cfg);
    const Extent rows = Extent::of(entry.seqlen_q, granules.seqlen_q);
    const Extent channels = Extent::of(args.shape.hdim_q, granules.hdim_q);
    auto out = ctx.output();
    ctx.load(out, matrix_of(args.q, item.b, item.h, entry.start_q, rows, channels), row0, 0);
    ctx.scale_all(out, static_cast<float>(args.shape.nhead_q / args.shape.nhead_k));
    ctx.store(matrix_of(args.o, item.b, item.h, entry.start_q, rows, channels), out, row0, 0);
}

struct ToyGrid {
    std::int64_t batch, heads, q_tiles;

    FMHA_DEVICE constexpr ToyGrid(const KernelConfig& config, const ToyArgs& args)
        : batch(args.shape.batch), heads(args.shape.nhead_q),
          q_tiles(((args.shape.mode == Mode::group ? args.shape.max_seqlen_q : args.shape.seqlen_q) +
                   config.algorithm.tile.m0 - 1) /
                  config.algorithm.tile.m0) {}

    FMHA_DEVICE constexpr std::int64_t size() const { return batch * heads * q_tiles; }
    FMHA_DEVICE constexpr ToyItem operator[](std::int64_t n) const {
        const std::int64_t head = n / q_tiles;
        return {head / heads, head % heads, n % q_tiles};
    }
};

template <>
struct Program<KernelFamily::toy> {
    using Args = ToyArgs;
    using Item = ToyItem;
    using Grid = ToyGrid;
    static constexpr bool has_products = false;
    static constexpr RowTile row_tile(const KernelConfig& config) {
        return {config.algorithm.tile.m0, static_cast<int>(config.signature.hdim_q)};
    }

    static std::int64_t rows(const KernelConfig& config, const ToyArgs& args, const ToyItem& item) {
        const std::int64_t tile = config.algorithm.tile.m0;
        const std::int64_t left = Entry::of(args.shape, args.lengths, item.b).seqlen_q - item.q_tile * tile;
        return left < tile ? left : tile;
    }
    template <class Ctx>
    FMHA_DEVICE static void run(Ctx& ctx, const ToyArgs& args, const ToyItem& item) {
        fmha_toy(ctx, args, item);
    }
};

} // namespace fmha::kernels
