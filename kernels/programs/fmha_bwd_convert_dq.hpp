#pragma once

#include "kernels/programs/bwd_decisions.hpp"
#include "kernels/programs/dq_partials.hpp"
#include "kernels/programs/program.hpp"

namespace fmha::kernels {

/// The work of one block of the last stage: dQ of query rows [q_tile·m0, …) of one (entry, head).
struct ConvertDqItem {
    std::int64_t b = 0, h = 0, q_tile = 0;
};
FMHA_FIELDS(ConvertDqItem, b, h, q_tile)

/// The last stage of backward: dQ = rd(Σ_splits dq_acc), splits in ascending order, for logical rows only. Without a
/// split dQ is 0 (W-14).
template <class Ctx>
FMHA_DEVICE void fmha_bwd_convert_dq(Ctx& ctx, const BwdArgs& args, const ConvertDqItem& item) {
    const auto& cfg = ctx.cfg();
    const Entry entry = ctx.entry(args.shape, args.lengths, item.b);
    const std::int64_t row0 = item.q_tile * cfg.algorithm.tile.m0;
    if (row0 >= entry.seqlen_q) return;
    const Granules granules = Granules::of(cfg);
    const Extent rows = Extent::of(entry.seqlen_q, granules.seqlen_q);
    const Extent channels = Extent::of(args.shape.hdim_q, granules.hdim_q);
    const DqPartials partials = DqPartials::of(cfg, args, item.b);

    auto one = ctx.rows();
    auto partial = ctx.partial(), dq = ctx.output();
    ctx.fill(one, 1.0F);
    ctx.fill(dq, 0.0F);
    FMHA_PIPELINED
    for (std::int64_t s = 0; s < ctx.dq_splits(partials.splits); ++s) {
        ctx.load(partial, partials.matrix(item.h, ctx.dq_split(s), rows, channels), row0, 0);
        ctx.add_scaled(dq, partial, one);
    }
    ctx.store(matrix_of(args.dq, item.b, item.h, entry.start_q, rows, channels), dq, row0, 0);
}

/// The blocks of one launch, numbered from 0, so that those of a head follow each other.
struct ConvertDqGrid {
    std::int64_t batch, heads, q_tiles;

    FMHA_DEVICE constexpr ConvertDqGrid(const KernelConfig& config, const BwdArgs& args)
        : batch(args.shape.batch), heads(args.shape.nhead_q),
          q_tiles(((args.shape.mode == Mode::group ? args.shape.max_seqlen_q : args.shape.seqlen_q) +
                   config.algorithm.tile.m0 - 1) /
                  config.algorithm.tile.m0) {}

    FMHA_DEVICE constexpr std::int64_t size() const { return batch * heads * q_tiles; }
    FMHA_DEVICE constexpr ConvertDqItem operator[](std::int64_t n) const {
        const std::int64_t head = n / q_tiles;
        return {head / heads, head % heads, n % q_tiles};
    }
};

template <>
struct Program<KernelFamily::bwd_convert_dq> {
    using Args = BwdArgs;
    using Item = ConvertDqItem;
    using Grid = ConvertDqGrid;
    static constexpr bool has_products = false;
    static constexpr RowTile row_tile(const KernelConfig& config) {
        return {config.algorithm.tile.m0, static_cast<int>(config.signature.hdim_q)};
    }

    static std::int64_t rows(const KernelConfig& config, const BwdArgs& args, const ConvertDqItem& item) {
        const std::int64_t tile = config.algorithm.tile.m0;
        const std::int64_t left = Entry::of(args.shape, args.lengths, item.b).seqlen_q - item.q_tile * tile;
        return left < tile ? left : tile;
    }
    template <class Ctx>
    FMHA_DEVICE static void run(Ctx& ctx, const BwdArgs& args, const ConvertDqItem& item) {
        fmha_bwd_convert_dq(ctx, args, item);
    }
};

} // namespace fmha::kernels
