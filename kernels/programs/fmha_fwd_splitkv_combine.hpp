#pragma once

#include "kernels/programs/decisions.hpp"
#include "kernels/programs/program.hpp"

#include <utility>

namespace fmha::kernels {

/// Query rows of a block. Combine kernels have no row tile of their own; this divides that of every main kernel.
inline constexpr int combine_rows = 8;

/// The rows that one block combines: query rows [q_tile·combine_rows, …) and output channels [v_tile·n1, …) of one (entry, head), or
/// those of CombinedRows.
struct CombineItem {
    std::int64_t b = 0, h = 0, q_tile = 0, v_tile = 0;
};
FMHA_FIELDS(CombineItem, b, h, q_tile, v_tile)

/// Splits that a block of query rows or heads combines in a short round, and up to which heads share a block.
inline constexpr int few_splits = 4;
inline constexpr int most_splits = 128; ///< S-7

/// The meaning of a block's rows. Entries of one query row at most would leave all rows of a block but one empty: with few
/// splits the row of every head takes a row of its own, with more splits every split of one head does.
struct CombinedRows {
    enum class Are : std::uint8_t { queries, heads, splits };
    Are are = Are::queries;
    std::int64_t heads = 1; ///< of a whole block

    FMHA_DEVICE static constexpr CombinedRows of(const KernelConfig& cfg, const SplitKvArgs& args) {
        const Shape& shape = args.shape;
        const std::int64_t rows = shape.mode == Mode::group ? shape.max_seqlen_q : shape.seqlen_q;
        if (!cfg.algorithm.pad.s || rows > 1) return {};
        if (args.partials.num_splits > few_splits) return {Are::splits, 1};
        return {Are::heads, combine_rows};
    }
    /// Heads of the block that begins with head h.
    FMHA_DEVICE constexpr std::int64_t from(std::int64_t h, const SplitKvArgs& args) const {
        const std::int64_t left = args.shape.nhead_q - h;
        return left < heads ? left : heads;
    }
};

/// The same rows of every split (S-3), which lie `step` bytes apart.
struct SplitMatrices {
    Matrix first;
    std::int64_t step = 0;

    /// Split s; where it does not `exist` the first one, so that no load waits for an answer.
    FMHA_DEVICE Matrix of(std::int64_t s, bool exists) const {
        Matrix matrix = first;
        matrix.tensor.data = static_cast<char*>(first.tensor.data) + (exists ? s : 0) * step;
        return matrix;
    }
    /// One row of every split, below each other.
    FMHA_DEVICE Matrix of_row(std::int64_t splits) const {
        Matrix matrix = first;
        matrix.tensor.row_stride = step / static_cast<std::int64_t>(sizeof(float));
        matrix.rows = {splits, splits, splits};
        return matrix;
    }
};

/// The matrices of one block: the partial results of every split, and the results made of them.
struct CombineMatrices {
    SplitMatrices partial_lse, partial_o;
    Matrix lse, o;
    const float* sinks = nullptr;   ///< from the block's first head on
    std::int64_t sink_distance = 0; ///< from one row to the next: 0 or 1
    std::int64_t heads = 1;

    template <class Ctx>
    FMHA_DEVICE static CombineMatrices of(Ctx& ctx, const SplitKvArgs& args, const Entry& entry,
                                          const CombineItem& item) {
        const auto& cfg = ctx.cfg();
        const Padding& pad = cfg.algorithm.pad;
        const CombinedRows block = CombinedRows::of(cfg, args);
        const bool shared = block.are == CombinedRows::Are::heads;
        const std::int64_t heads = block.from(item.h, args);
        const Extent rows = Extent::of(entry.seqlen_q, pad.s ? 1 : combine_rows), one{1, 1, 1};
        const Extent channels = Extent::of(args.shape.hdim_v, pad.dv != 0 ? pad.dv : cfg.algorithm.tile.n1);
        const auto of_heads = [&](const TensorView& tensor, std::int64_t h, Extent cols, std::int64_t apart) {
            const Matrix matrix = matrix_of(tensor, item.b, h, entry.start_q, rows, cols);
            return shared ? ctx.across_heads(matrix, heads, apart) : matrix;
        };
        const std::int64_t head = ctx.partial_head(args, item.h, 0);
        std::int64_t apart = 0;
        if (heads > 1) {
            const std::int64_t between = ctx.partial_head(args, item.h + heads - 1, 0) - head;
            apart = static_cast<std::int32_t>(between) / (static_cast<std::int32_t>(heads) - 1);
        }
        const auto of_splits = [&](const TensorView& tensor, Extent cols) {
            constexpr std::int64_t size = sizeof(float);
            return SplitMatrices{of_heads(tensor, head, cols, apart),
                                 (ctx.partial_head(args, item.h, 1) - head) * tensor.head_stride * size};
        };
        CombineMatrices m{of_splits(args.partials.lse_acc, one), of_splits(args.partials.o_acc, channels),
                          of_heads(args.lse, item.h, one, 1), of_heads(args.o, item.h, channels, 1)};
        if (args.score.sink_logit != nullptr) m.sinks = args.score.sink_logit + item.h;
        m.sink_distance = shared ? 1 : 0;
        m.heads = heads;
        return m;
    }
    /// The sink logit of row r of the block.
    FMHA_DEVICE float sink(int r) const {
        const std::int64_t head = r * sink_distance;
        return sinks != nullptr && head < heads ? sinks[head] : never;
    }
};

/// As many tiles as splits are under way.
template <class Tile, int n>
struct SplitTiles {
    Tile of[static_cast<unsigned>(n)];
};
template <int n, class Make>
FMHA_DEVICE auto split_tiles(Make make) {
    return [&]<int... i>(std::integer_sequence<int, i...>) {
        return SplitTiles<decltype(make()), n>{{(static_cast<void>(i), make())...}};
    }
    (std::make_integer_sequence<int, n>{});
}

/// For every round of n splits: load(i, split, whether it exists) of all of them, then use(i, whether it exists). A
/// round waits for memory once, not once a split: a branch between two loads would make the second wait for the first.
template <int n, class Load, class Use>
FMHA_DEVICE void each_split(std::int64_t splits, Load load, Use use) {
    const int count = static_cast<int>(splits);
    FMHA_NO_UNROLL
    for (int s = 0; s < count; s += n) {
        FMHA_UNROLL
        for (int i = 0; i < n; ++i) load(i, s + i, s + i < count);
        FMHA_UNROLL
        for (int i = 0; i < n; ++i) use(i, s + i < count);
    }
}

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

/// total += Σ exp(lse_s − top), out += Σ exp(lse_s − top) · o_s. `weights` and `partials` are overwritten.
template <int round, class Ctx, class Sums, class Rows, class Partials, class Weights>
FMHA_DEVICE void add_splits(Ctx& ctx, const CombineMatrices& in, std::int64_t row0, std::int64_t channel0,
                            std::int64_t splits, bool whole_units, Sums& out, Partials& partials, Rows& total,
                            Weights& weights, const Rows& top) {
    each_split<round>(
        splits,
        [&](int i, int s, bool exists) {
            Matrix o = in.partial_o.of(s, exists);
            o.whole_units = whole_units;
            ctx.load(weights.of[i], in.partial_lse.of(s, exists), row0);
            ctx.load(partials.of[i], o, row0, channel0);
        },
        [&](int i, bool exists) {
            auto& weight = weights.of[i];
            ctx.map_rows(weight, weight, top, [&ctx, exists](float lse, float m) {
                return exists ? split_mass(ctx, lse, m) : 0.0F;
            });
            ctx.map_rows(total, total, weight, [](float sum, float w) { return sum + w; });
            ctx.add_scaled(out, partials.of[i], weight);
        });
}

/// Where maximum and total of the rows of a block begin: at the sink logit and its share.
template <class Ctx, class Rows>
FMHA_DEVICE void begin_totals(Ctx& ctx, const CombineMatrices& in, Rows& top, Rows& total, Rows& sinks) {
    ctx.set_rows(sinks, [&in](int r) { return in.sink(r); });
    ctx.map_rows(total, top, sinks,
                 [&ctx](float m, float sink) { return ctx.sink_mass(sink) * split_mass(ctx, sink, m); });
}

/// Every row of a block from its splits, in rounds of `round`.
template <int round, class Ctx, class Sums, class Rows, class Partials, class Weights>
FMHA_DEVICE void combine_each_row(Ctx& ctx, const CombineMatrices& in, std::int64_t row0,
                                  std::int64_t channel0, std::int64_t splits, Sums& out, Partials& partials,
                                  Rows& top, Rows& total, Weights& weights) {
    ctx.set_rows(top, [&in](int r) { return in.sink(r); });
    each_split<round>(
        splits,
        [&](int i, int s, bool exists) { ctx.load(weights.of[i], in.partial_lse.of(s, exists), row0); },
        [&](int i, bool) {
            ctx.map_rows(top, top, weights.of[i], [](float m, float lse) { return lse > m ? lse : m; });
        });
    begin_totals(ctx, in, top, total, weights.of[0]);
    ctx.fill(out, 0.0F);
    // Asked once: with a branch in each of them no two loads would be under way together.
    if (has_whole_units(in.partial_o.first, in.partial_o.step / 4))
        add_splits<round>(ctx, in, row0, channel0, splits, true, out, partials, total, weights, top);
    else
        add_splits<1>(ctx, in, row0, channel0, splits, false, out, partials, total, weights, top);
}

/// The row of one head, whose splits are the rows of a block. Where all of them fit a round, every load is under way before
/// the first is waited for; else LSEs are loaded twice. `spare` is overwritten.
template <int round, int most, class Ctx, class Sums, class Rows, class Partials, class Weights>
FMHA_DEVICE void combine_one_row(Ctx& ctx, const CombineMatrices& in, std::int64_t channel0,
                                 std::int64_t splits, Sums& out, Partials& partials, Rows& top, Rows& total,
                                 Weights& weights, Rows& spare) {
    constexpr bool once = round * combine_rows >= most;
    const std::int64_t tiles = (splits + combine_rows - 1) / combine_rows;
    const Matrix lse = in.partial_lse.of_row(splits);
    Matrix o = in.partial_o.of_row(splits);
    o.whole_units = has_whole_units(o, 0);
    const auto load_lse = [&](int i, int t) {
        const std::int64_t first = t * combine_rows;
        ctx.load(weights.of[i], lse, first);
        ctx.set_rows(spare, [left = splits - first](int r) { return r < left ? 0.0F : never; });
        ctx.map_rows(weights.of[i], weights.of[i], spare, [](float x, float there) { return x + there; });
    };
    const auto load_o = [&](int i, int t) { ctx.load(partials.of[i], o, t * combine_rows, channel0); };

    if (once) {
        FMHA_UNROLL
        for (int i = 0; i < round; ++i) load_o(i, i);
    }
    ctx.set_rows(top, [&in](int r) { return in.sink(r); });
    each_split<round>(
        tiles, [&](int i, int t, bool) { load_lse(i, t); },
        [&](int i, bool) {
            ctx.map_rows(top, top, weights.of[i], [](float m, float x) { return x > m ? x : m; });
        });
    ctx.max_over_rows(top);
    ctx.fill(total, 0.0F);
    ctx.fill(out, 0.0F);
    each_split<round>(
        tiles,
        [&](int i, int t, bool) {
            if (once) return;
            load_lse(i, t);
            load_o(i, t);
        },
        [&](int i, bool) {
            auto& weight = weights.of[i];
            ctx.map_rows(weight, weight, top, [&ctx](float x, float m) { return split_mass(ctx, x, m); });
            ctx.map_rows(total, total, weight, [](float sum, float w) { return sum + w; });
            ctx.add_scaled(out, partials.of[i], weight);
        });
    ctx.sum_over_rows(total);
    ctx.sum_over_rows(out);
    begin_totals(ctx, in, top, weights.of[0], spare);
    ctx.map_rows(total, total, weights.of[0], [](float sum, float sink) { return sum + sink; });
}

/// The second stage of split-KV (S-4): O = Σ exp(lse_s − LSE) · o_s with LSE = m + ln(Σ exp(lse_s − m) + exp(sink − m)).
/// One block owns combine_rows rows, those of one (entry, head), of the heads of an entry or of the splits of one head, and n1
/// channels of the output. Its tiles:
///
/// - top (combine_rows), a row vector: m, the largest lse_s, or the sink logit
/// - total (combine_rows), a row vector: the sum behind the logarithm
/// - weights (combine_rows), row vectors: lse_s of a split each, then exp(lse_s − m)
/// - partials (combine_rows, n1), accumulators: o_s of a split each
/// - out (combine_rows, n1), an accumulator: Σ weight · o_s, not yet divided by total
///
/// Where rows are splits, tile t of weights and partials has those from t · combine_rows on, and the rows of top, total and out
/// are all the same in the end; the first one is stored.
template <class Ctx>
FMHA_DEVICE void fmha_fwd_splitkv_combine(Ctx& ctx, const SplitKvArgs& args, const CombineItem& item) {
    const auto& cfg = ctx.cfg();
    const Entry entry = ctx.queries(args.shape, args.lengths, item.b);
    const std::int64_t row0 = item.q_tile * combine_rows, channel0 = item.v_tile * cfg.algorithm.tile.n1;
    if (row0 >= entry.seqlen_q) return;

    const CombineMatrices in = CombineMatrices::of(ctx, args, entry, item);
    const std::int64_t splits = ctx.splits(args.partials);

    constexpr int round = Ctx::splits_at_once, short_round = round < few_splits ? round : few_splits;
    auto top = ctx.rows(), total = ctx.rows(), spare = ctx.rows();
    auto weights = split_tiles<round>([&] { return ctx.rows(); });
    auto partials = split_tiles<round>([&] { return ctx.partial(); });
    auto out = ctx.output();

    constexpr int pair = round < 2 ? round : 2, of_pair = pair * combine_rows;
    if (CombinedRows::of(cfg, args).are == CombinedRows::Are::splits && splits <= of_pair)
        combine_one_row<pair, of_pair>(ctx, in, channel0, splits, out, partials, top, total, weights, spare);
    else if (CombinedRows::of(cfg, args).are == CombinedRows::Are::splits)
        combine_one_row<round, most_splits>(ctx, in, channel0, splits, out, partials, top, total, weights,
                                            spare);
    else if (splits <= few_splits)
        combine_each_row<short_round>(ctx, in, row0, channel0, splits, out, partials, top, total, weights);
    else
        combine_each_row<round>(ctx, in, row0, channel0, splits, out, partials, top, total, weights);

    if (cfg.signature.has_lse && args.lse.present() && item.v_tile == 0) {
        ctx.map_rows(spare, top, total,
                     [&ctx](float m, float sum) { return sum > 0.0F ? ctx.lse(m, ctx.log(sum)) : never; });
        ctx.store(in.lse, spare, row0);
    }
    auto& factor = weights.of[0];
    ctx.map_rows(factor, total, total, [&ctx, scale = args.score.scale_o](float, float sum) {
        return sum > 0.0F ? ctx.row_scale(scale, sum) : 0.0F;
    });
    ctx.scale_rows(out, factor);
    ctx.store(in.o, out, row0, channel0);
}

/// The blocks of one launch, numbered from 0, so that those of a row follow each other.
struct CombineGrid {
    std::int64_t batch, block_heads, heads, q_tiles, v_tiles;

    FMHA_DEVICE constexpr CombineGrid(const KernelConfig& config, const SplitKvArgs& args)
        : batch(args.shape.batch), block_heads(CombinedRows::of(config, args).heads),
          heads(tiles(args.shape.nhead_q, block_heads)),
          q_tiles(tiles(args.shape.mode == Mode::group ? args.shape.max_seqlen_q : args.shape.seqlen_q,
                        combine_rows)),
          v_tiles(tiles(args.shape.hdim_v, config.algorithm.tile.n1)) {}

    FMHA_DEVICE constexpr std::int64_t size() const { return batch * heads * q_tiles * v_tiles; }
    FMHA_DEVICE constexpr CombineItem operator[](std::int64_t n) const {
        const Divided q = Divided::of(n, v_tiles), head = Divided::of(q.quotient, q_tiles),
                      entry = Divided::of(head.quotient, heads);
        return {entry.quotient, entry.rest * block_heads, head.rest, q.rest};
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
    static constexpr RowTile row_tile(const KernelConfig& config) {
        return {combine_rows, config.algorithm.tile.n1};
    }

    static std::int64_t rows(const KernelConfig& config, const SplitKvArgs& args, const CombineItem& item) {
        const std::int64_t queries = Entry::of_queries(args.shape, args.lengths, item.b).seqlen_q;
        const CombinedRows block = CombinedRows::of(config, args);
        if (block.are == CombinedRows::Are::heads) return queries * block.from(item.h, args);
        if (block.are == CombinedRows::Are::splits)
            return queries *
                   (args.partials.num_splits < combine_rows ? args.partials.num_splits : combine_rows);
        const std::int64_t left = queries - item.q_tile * combine_rows;
        return left < combine_rows ? left : combine_rows;
    }
    template <class Ctx>
    FMHA_DEVICE static void run(Ctx& ctx, const SplitKvArgs& args, const CombineItem& item) {
        fmha_fwd_splitkv_combine(ctx, args, item);
    }
};

} // namespace fmha::kernels
