#pragma once

#include "kernels/programs/decisions.hpp"
#include "kernels/programs/program.hpp"

namespace fmha::kernels {

/// Query rows of a block. Combine kernels have no row tile of their own; this divides that of every main kernel.
inline constexpr int combine_rows = 8;

/// What one block combines: query rows [q_tile·combine_rows, …) and output channels [v_tile·n1, …) of one (entry, head).
struct CombineItem {
    std::int64_t b = 0, h = 0, q_tile = 0, v_tile = 0;
};
FMHA_FIELDS(CombineItem, b, h, q_tile, v_tile)

/// The matrices of one (entry, head): the partial results of every split (S-3), and what is made of them.
struct CombineMatrices {
    const SplitKvArgs& args;
    CombineItem item;
    std::int64_t start = 0;
    Extent rows, channels;

    FMHA_DEVICE static CombineMatrices of(const KernelConfig& cfg, const SplitKvArgs& args,
                                          const Entry& entry, const CombineItem& item) {
        const Padding& pad = cfg.algorithm.pad;
        return {args, item, entry.start_q, Extent::of(entry.seqlen_q, pad.s ? 1 : combine_rows),
                Extent::of(args.shape.hdim_v, pad.dv != 0 ? pad.dv : cfg.algorithm.tile.n1)};
    }
    FMHA_DEVICE Matrix partial_lse(std::int64_t head) const {
        return matrix_of(args.partials.lse_acc, item.b, head, start, rows, {1, 1, 1});
    }
    FMHA_DEVICE Matrix partial_o(std::int64_t head) const {
        return matrix_of(args.partials.o_acc, item.b, head, start, rows, channels);
    }
    FMHA_DEVICE Matrix lse() const { return matrix_of(args.lse, item.b, item.h, start, rows, {1, 1, 1}); }
    FMHA_DEVICE Matrix o() const { return matrix_of(args.o, item.b, item.h, start, rows, channels); }
};

/// exp(x − m). A split without keys has none, also in a row where m = −∞.
template <class Ctx>
FMHA_DEVICE float split_mass(Ctx& ctx, float x, float m) {
    return x > never ? ctx.exp2(ctx.to_base2(ctx.below_top(x, m))) : 0.0F;
}

/// Whether `whole_units` is true of a matrix of fp32, and of those that begin multiples of `distance` elements behind it.
FMHA_DEVICE bool has_whole_units(const Matrix& matrix, std::int64_t distance) {
    const auto address = reinterpret_cast<std::uintptr_t>(matrix.tensor.data) / 4;
    const auto sum = address | static_cast<std::uintptr_t>(matrix.origin | matrix.tensor.row_stride |
                                                           distance | matrix.cols.read);
    constexpr std::int64_t near = std::int64_t{1} << 24; // lines of a tile lie less than 2^31 bytes apart
    return matrix.tensor.col_stride == 1 && matrix.tensor.row_stride < near && sum % 4 == 0;
}

/// total += Σ exp(lse_s − top), out += Σ exp(lse_s − top) · o_s. `weight` and `partial` are overwritten.
template <class Ctx, class Sums, class Rows>
FMHA_DEVICE void add_splits(Ctx& ctx, const CombineMatrices& in, std::int64_t splits, bool whole_units,
                            Sums& out, Sums& partial, Rows& total, Rows& weight, const Rows& top) {
    const std::int64_t row0 = in.item.q_tile * combine_rows,
                       channel0 = in.item.v_tile * ctx.cfg().algorithm.tile.n1;
    FMHA_DEEPLY_PIPELINED
    for (std::int64_t s = 0; s < splits; ++s) {
        const std::int64_t head = ctx.partial_head(in.args, in.item.h, s);
        Matrix o = in.partial_o(head);
        o.whole_units = whole_units;
        ctx.load(weight, in.partial_lse(head), row0);
        ctx.load(partial, o, row0, channel0);
        ctx.map_rows(weight, weight, top, [&ctx](float lse, float m) { return split_mass(ctx, lse, m); });
        ctx.map_rows(total, total, weight, [](float sum, float w) { return sum + w; });
        ctx.add_scaled(out, partial, weight);
    }
}

/// The second stage of split-KV (S-4): O = Σ exp(lse_s − LSE) · o_s with LSE = m + ln(Σ exp(lse_s − m) + exp(sink − m)).
/// One block owns combine_rows query rows of one (entry, head) and n1 channels of the output. Its tiles:
///
/// - top (combine_rows), a row vector: m, the largest lse_s, or the sink logit
/// - total (combine_rows), a row vector: the sum behind the logarithm
/// - weight (combine_rows), a row vector: lse_s of one split, then exp(lse_s − m)
/// - partial (combine_rows, n1), an accumulator: o_s of one split
/// - out (combine_rows, n1), an accumulator: Σ weight · o_s, not yet divided by total
template <class Ctx>
FMHA_DEVICE void fmha_fwd_splitkv_combine(Ctx& ctx, const SplitKvArgs& args, const CombineItem& item) {
    const auto& cfg = ctx.cfg();
    const Entry entry = ctx.queries(args.shape, args.lengths, item.b);
    const std::int64_t row0 = item.q_tile * combine_rows, channel0 = item.v_tile * cfg.algorithm.tile.n1;
    if (row0 >= entry.seqlen_q) return;

    const CombineMatrices in = CombineMatrices::of(cfg, args, entry, item);
    const std::int64_t splits = ctx.splits(args.partials);
    const float sink = args.score.sink_logit != nullptr ? args.score.sink_logit[item.h] : never;

    auto top = ctx.rows(), total = ctx.rows(), weight = ctx.rows();
    auto partial = ctx.partial(), out = ctx.output();

    ctx.fill(top, sink);
    FMHA_DEEPLY_PIPELINED
    for (std::int64_t s = 0; s < splits; ++s) {
        ctx.load(weight, in.partial_lse(ctx.partial_head(args, item.h, s)), row0);
        ctx.map_rows(top, top, weight, [](float m, float lse) { return lse > m ? lse : m; });
    }

    ctx.map_rows(total, top, top,
                 [&ctx, sink](float m, float) { return ctx.sink_mass(sink) * split_mass(ctx, sink, m); });
    ctx.fill(out, 0.0F);
    // Asked once: with a branch in each of them no two loads would be under way together.
    const TensorView& o_acc = args.partials.o_acc;
    if (has_whole_units(in.partial_o(0), o_acc.head_stride))
        add_splits(ctx, in, splits, true, out, partial, total, weight, top);
    else
        add_splits(ctx, in, splits, false, out, partial, total, weight, top);

    if (cfg.signature.has_lse && args.lse.present() && item.v_tile == 0) {
        auto lse = ctx.rows();
        ctx.map_rows(lse, top, total,
                     [&ctx](float m, float sum) { return sum > 0.0F ? ctx.lse(m, ctx.log(sum)) : never; });
        ctx.store(in.lse(), lse, row0);
    }
    ctx.map_rows(weight, total, total, [&ctx, scale = args.score.scale_o](float, float sum) {
        return sum > 0.0F ? ctx.row_scale(scale, sum) : 0.0F;
    });
    ctx.scale_rows(out, weight);
    ctx.store(in.o(), out, row0, channel0);
}

/// The blocks of one launch, numbered from 0, so that those of a row follow each other.
struct CombineGrid {
    std::int64_t batch, heads, q_tiles, v_tiles;

    FMHA_DEVICE constexpr CombineGrid(const KernelConfig& config, const SplitKvArgs& args)
        : batch(args.shape.batch), heads(args.shape.nhead_q),
          q_tiles(tiles(args.shape.mode == Mode::group ? args.shape.max_seqlen_q : args.shape.seqlen_q,
                        combine_rows)),
          v_tiles(tiles(args.shape.hdim_v, config.algorithm.tile.n1)) {}

    FMHA_DEVICE constexpr std::int64_t size() const { return batch * heads * q_tiles * v_tiles; }
    FMHA_DEVICE constexpr CombineItem operator[](std::int64_t n) const {
        const std::int64_t q = n / v_tiles, head = q / q_tiles;
        return {head / heads, head % heads, q % q_tiles, n % v_tiles};
    }

  private:
    FMHA_DEVICE static constexpr std::int64_t tiles(std::int64_t extent, std::int64_t tile) {
        return (extent + tile - 1) / tile;
    }
};

template <>
struct Program<KernelFamily::fwd_splitkv_combine> {
    using Args = SplitKvArgs;
    using Item = CombineItem;
    using Grid = CombineGrid;
    static constexpr bool has_products = false;

    static std::int64_t rows(const KernelConfig&, const SplitKvArgs& args, const CombineItem& item) {
        const std::int64_t left =
            Entry::of_queries(args.shape, args.lengths, item.b).seqlen_q - item.q_tile * combine_rows;
        return left < combine_rows ? left : combine_rows;
    }
    template <class Ctx>
    FMHA_DEVICE static void run(Ctx& ctx, const SplitKvArgs& args, const CombineItem& item) {
        fmha_fwd_splitkv_combine(ctx, args, item);
    }
};

} // namespace fmha::kernels
