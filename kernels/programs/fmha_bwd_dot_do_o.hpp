#pragma once

#include "kernels/programs/bwd_decisions.hpp"
#include "kernels/programs/program.hpp"

namespace fmha::kernels {

/// The work of one block of the first stage: D of query rows [q_tile·m0, …) of one (entry, head), or, with q_tile = −1,
/// d_sink of a head, over all entries.
struct DotDoOItem {
    std::int64_t b = 0, h = 0, q_tile = 0;

    FMHA_DEVICE constexpr bool is_sink() const { return q_tile < 0; }
};
FMHA_FIELDS(DotDoOItem, b, h, q_tile)

/// The matrices of one (entry, head).
struct DotDoOMatrices {
    Matrix d_o, o, lse, d;

    FMHA_DEVICE static DotDoOMatrices of(const KernelConfig& cfg, const BwdArgs& args, const Entry& entry,
                                         std::int64_t b, std::int64_t h) {
        const Granules granules = Granules::of(cfg);
        const Extent rows = Extent::of(entry.seqlen_q, granules.seqlen_q);
        const Extent channels = Extent::of(args.shape.hdim_v, granules.hdim_v);
        return {matrix_of(args.d_o, b, h, entry.start_q, rows, channels),
                matrix_of(args.o, b, h, entry.start_q, rows, channels),
                matrix_of(args.lse, b, h, entry.start_q, rows, {1, 1, 1}),
                matrix_of(args.d, b, h, entry.start_q, rows, {1, 1, 1})};
    }
};

/// W-1: delta[r] = Σ_c dO · O of the rows from row0 on.
template <class Ctx, class Rows>
FMHA_DEVICE void row_deltas(Ctx& ctx, Rows& delta, const DotDoOMatrices& in, std::int64_t row0) {
    auto d_o = ctx.partial(), o = ctx.output();
    ctx.load(d_o, in.d_o, row0, 0);
    ctx.load(o, in.o, row0, 0);
    ctx.fill(delta, 0.0F);
    ctx.add_row_products(delta, d_o, o);
}

/// W-10 of one head. One block does it alone, so that the sum has one order and needs no memory that the caller clears
/// (W-13). It computes Δ again, because the blocks that store D run at the same time.
template <class Ctx>
FMHA_DEVICE void sink_gradient(Ctx& ctx, const BwdArgs& args, std::int64_t h) {
    const auto& cfg = ctx.cfg();
    const float sink = args.score.sink_logit != nullptr ? args.score.sink_logit[h] : never;
    auto total = ctx.rows(), delta = ctx.rows(), lse = ctx.rows();
    ctx.fill(total, 0.0F);
    FMHA_NO_UNROLL
    for (std::int64_t b = 0; sink > never && b < args.shape.batch; ++b) {
        const Entry entry = ctx.entry(args.shape, args.lengths, b);
        const DotDoOMatrices in = DotDoOMatrices::of(cfg, args, entry, b, h);
        FMHA_NO_UNROLL
        for (std::int64_t row0 = 0; row0 < entry.seqlen_q; row0 += cfg.algorithm.tile.m0) {
            row_deltas(ctx, delta, in, row0);
            ctx.load(lse, in.lse, row0);
            // A row that does not exist has Δ = 0, and no LSE.
            ctx.map_rows(delta, delta, lse, [&ctx, sink](float x, float of_row) {
                return x != 0.0F ? x * ctx.exp2(ctx.to_base2(ctx.sink_exponent(sink, of_row))) : 0.0F;
            });
            ctx.map_rows(total, total, delta, [](float sum, float x) { return sum + x; });
        }
    }
    ctx.store_sum(args.d_sink + h, total, ctx.sink_gradient_sign());
}

/// The first stage of backward: D = p_undrop · Δ of every row (W-1), and d_sink (W-10).
template <class Ctx>
FMHA_DEVICE void fmha_bwd_dot_do_o(Ctx& ctx, const BwdArgs& args, const DotDoOItem& item) {
    if (item.is_sink()) return sink_gradient(ctx, args, item.h);
    const auto& cfg = ctx.cfg();
    const Entry entry = ctx.entry(args.shape, args.lengths, item.b);
    const std::int64_t row0 = item.q_tile * cfg.algorithm.tile.m0;
    if (row0 >= entry.seqlen_q) return;
    const DotDoOMatrices in = DotDoOMatrices::of(cfg, args, entry, item.b, item.h);
    auto delta = ctx.rows();
    row_deltas(ctx, delta, in, row0);
    ctx.map_rows(delta, delta, delta,
                 [kept = ctx.delta_factor(args.dropout)](float x, float) { return x * kept; });
    ctx.store(in.d, delta, row0);
}

/// The blocks of one launch: the heads whose d_sink is wanted, then the row tiles of every head.
struct DotDoOGrid {
    std::int64_t batch, heads, q_tiles, sinks;

    FMHA_DEVICE constexpr DotDoOGrid(const KernelConfig& config, const BwdArgs& args)
        : batch(args.shape.batch), heads(args.shape.nhead_q),
          q_tiles(((args.shape.mode == Mode::group ? args.shape.max_seqlen_q : args.shape.seqlen_q) +
                   config.algorithm.tile.m0 - 1) /
                  config.algorithm.tile.m0),
          sinks(args.d_sink != nullptr ? heads : 0) {}

    FMHA_DEVICE constexpr std::int64_t size() const { return batch * heads * q_tiles + sinks; }
    /// The heads first: each walks over all entries.
    FMHA_DEVICE constexpr DotDoOItem operator[](std::int64_t n) const {
        if (n < sinks) return {0, n, -1};
        const std::int64_t head = (n - sinks) / q_tiles;
        return {head / heads, head % heads, (n - sinks) % q_tiles};
    }
};

template <>
struct Program<KernelFamily::bwd_dot_do_o> {
    using Args = BwdArgs;
    using Item = DotDoOItem;
    using Grid = DotDoOGrid;
    static constexpr bool has_products = false;
    static constexpr RowTile row_tile(const KernelConfig& config) {
        return {config.algorithm.tile.m0, static_cast<int>(config.signature.hdim_v)};
    }

    static std::int64_t rows(const KernelConfig& config, const BwdArgs& args, const DotDoOItem& item) {
        const std::int64_t tile = config.algorithm.tile.m0;
        if (item.is_sink()) return tile;
        const std::int64_t left = Entry::of(args.shape, args.lengths, item.b).seqlen_q - item.q_tile * tile;
        return left < tile ? left : tile;
    }
    template <class Ctx>
    FMHA_DEVICE static void run(Ctx& ctx, const BwdArgs& args, const DotDoOItem& item) {
        fmha_bwd_dot_do_o(ctx, args, item);
    }
};

} // namespace fmha::kernels
