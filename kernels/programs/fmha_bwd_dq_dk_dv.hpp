#pragma once

#include "kernels/programs/bwd_decisions.hpp"
#include "kernels/programs/key_jobs.hpp"
#include "kernels/programs/key_loop.hpp"
#include "kernels/programs/program.hpp"

namespace fmha::kernels {

/// The work of one block of backward's main kernel: the key tiles that `KeyJobs` names.
struct BwdItem {
    std::int64_t block = 0;
};
FMHA_FIELDS(BwdItem, block)

/// The extents of an entry as the main kernel reads them.
struct BwdExtents {
    Extent queries, keys, qk_channels, v_channels;

    FMHA_DEVICE static BwdExtents of(const KernelConfig& cfg, const BwdArgs& args, const Entry& entry) {
        const Granules granules = Granules::of(cfg);
        return {Extent::of(entry.seqlen_q, granules.seqlen_q), Extent::of(entry.seqlen_k, granules.seqlen_k),
                Extent::of(args.shape.hdim_q, granules.hdim_q),
                Extent::of(args.shape.hdim_v, granules.hdim_v)};
    }
};

/// The keys of a job and their gradients: those of one query head, or the sums over those of a KV head (W-11).
struct BwdKeys {
    Matrix k, v, dk, dv;

    FMHA_DEVICE static BwdKeys of(const BwdArgs& args, const BwdExtents& extents, const Entry& entry,
                                  const KeyJob& job, std::int64_t hk) {
        const std::int64_t b = job.b, of_gradient = args.reduce_dk_dv ? hk : job.h;
        return {matrix_of(args.k, b, hk, entry.start_k, extents.keys, extents.qk_channels),
                matrix_of(args.v, b, hk, entry.start_k, extents.keys, extents.v_channels),
                matrix_of(args.dk, b, of_gradient, entry.start_k, extents.keys, extents.qk_channels),
                matrix_of(args.dv, b, of_gradient, entry.start_k, extents.keys, extents.v_channels)};
    }
};

/// The matrices of the queries of one (entry, head).
struct BwdQueries {
    Matrix q, d_o, lse, d, bias, randval, dbias;

    FMHA_DEVICE static BwdQueries of(const BwdArgs& args, const BwdExtents& extents, const Entry& entry,
                                     std::int64_t b, std::int64_t h) {
        const Extent sq = extents.queries, sk = extents.keys;
        return {matrix_of(args.q, b, h, entry.start_q, sq, extents.qk_channels),
                matrix_of(args.d_o, b, h, entry.start_q, sq, extents.v_channels),
                matrix_of(args.lse, b, h, entry.start_q, sq, {1, 1, 1}),
                matrix_of(args.d, b, h, entry.start_q, sq, {1, 1, 1}),
                matrix_of(args.bias, b, h, entry.start_q, sq, sk),
                matrix_of(args.randval, b, h, entry.start_q, sq, sk),
                matrix_of(args.dbias, b, h, entry.start_q, sq, sk)};
    }
};

/// Which query tiles see some key of [key0, key0 + keys).
struct QueryTiles {
    std::int64_t begin = 0, end = 0;

    FMHA_DEVICE static constexpr QueryTiles of(const Mask& mask, std::int64_t key0, std::int64_t keys,
                                               std::int64_t query_count, std::int64_t m0) {
        std::int64_t first = key0 - mask.x + 1, last = key0 + keys - 1 + mask.y;
        if (first < 0) first = 0;
        if (last > query_count) last = query_count;
        return first < last ? QueryTiles{first / m0, (last + m0 - 1) / m0} : QueryTiles{};
    }
};

/// The part of the queries of one (entry, head) in a key tile's gradients.
struct BwdHead {
    std::int64_t h = 0;
    BwdQueries in;
    Scoring scoring;

    template <class Ctx>
    FMHA_DEVICE static BwdHead of(Ctx& ctx, const BwdArgs& args, const BwdExtents& extents,
                                  const Entry& entry, std::int64_t b, std::int64_t h) {
        const auto& has = ctx.cfg().signature;
        BwdHead head;
        head.h = h;
        head.in = BwdQueries::of(args, extents, entry, b, h);
        Scoring& s = head.scoring;
        const std::int64_t sq = entry.seqlen_q, sk = entry.seqlen_k;
        s.mask = ctx.mask(Mask::of(args.mask, has.mask, false, sq, sk));
        if (has.bias == BiasType::alibi)
            s.alibi = Alibi::of(args.mask, s.mask, ctx.alibi_slope(args.score, b, h), sq, sk);
        s.dropout = Dropout::of(args.dropout, has.has_dropout, args.shape.nhead_q, b, h);
        return head;
    }
};

/// From LSE to the exponents to subtract from a row's logits, in their units, with ALiBi relative to β0 of the row. +∞, so
/// that every weight is 0, for rows that have no normaliser or do not exist. `spare` is overwritten.
template <class Ctx, class Normalisers, class Rows>
FMHA_DEVICE void to_exponents(Ctx& ctx, Normalisers& top, Rows& spare, const BwdHead& head,
                              std::int64_t row0) {
    constexpr float nothing = -never;
    if (ctx.cfg().signature.bias == BiasType::alibi) {
        const Alibi& alibi = head.scoring.alibi;
        const RowPlanes planes = alibi.planes(row0, ctx.cfg().algorithm.tile.m0, ctx.cfg().algorithm.tile.n0);
        if (planes.straight)
            ctx.set_rows(spare,
                         [&](int r) { return static_cast<float>(planes.origin + planes.origin_step * r); });
        else
            ctx.set_rows(spare, [&](int r) { return alibi.origin(row0 + r); });
        ctx.map_rows(top, top, spare, [slope = alibi.slope](float lse, float origin) {
            return lse > never ? __builtin_fmaf(-slope, origin, lse) : never;
        });
    }
    ctx.map_rows(top, top, top,
                 [&ctx](float lse, float) { return lse > never ? ctx.to_base2(lse) : nothing; });
    const std::int64_t rows = head.in.lse.rows.read - row0;
    if (rows >= ctx.cfg().algorithm.tile.m0) return;
    ctx.set_rows(spare, [rows](int r) { return r < rows ? 1.0F : 0.0F; });
    ctx.map_rows(top, top, spare, [](float x, float exists) { return exists > 0.0F ? x : -never; });
}

/// F-1 to F-5 and W-2: weights = p of the tile of rows from row0 on and keys from key0 on. `spare` is overwritten.
template <class Ctx, class Scores, class Query, class Key, class Normalisers, class Rows>
FMHA_DEVICE void recompute_weights(Ctx& ctx, Scores& weights, Query& query, Key& key, Normalisers& top,
                                   Rows& spare, const BwdArgs& args, const BwdHead& head, Extent keys,
                                   std::int64_t row0, std::int64_t key0) {
    ctx.fill(weights, 0.0F);
    ctx.product_abt(weights, query, key);
    ctx.arrive(top);
    to_exponents(ctx, top, spare, head, row0);
    ctx.map(weights, [f = ctx.to_base2(ctx.scale(args.score))](float s, int, int) { return s * f; });
    bias_and_mask(ctx, weights, head.scoring, {head.in.bias, key0}, keys.read, row0, key0,
                  [&] { return head.scoring.shows_all(ctx.cfg(), row0, key0, keys.read); });
    ctx.exp2_minus(weights, top);
}

/// The loads of one tile of queries, one tile ahead: query (m0, hdim_q) and d_o (m0, hdim_v), operands; top and d (m0), row vectors,
/// LSE and D.
template <class Query, class OutputGradient, class Normalisers, class Deltas>
struct BwdQueryRows {
    Query& query;
    OutputGradient& d_o;
    Normalisers& top;
    Deltas& d;

    template <class Ctx>
    FMHA_DEVICE void load(Ctx& ctx, const BwdQueries& in, std::int64_t row0) const {
        if (!take(ctx)) {
            ctx.load(query, in.q, row0, 0);
            ctx.load(top, in.lse, row0);
            ctx.load(d, in.d, row0);
            ctx.load(d_o, in.d_o, row0, 0);
        }
        if constexpr (Ctx::may_prefetch_first) {
            ctx.arrive_early(top);
            ctx.arrive_early(d);
        }
    }
    template <class Ctx>
    FMHA_DEVICE void prefetch(Ctx& ctx, const BwdQueries& in, std::int64_t row0, std::int64_t key0) const {
        if constexpr (Ctx::may_prefetch_first)
            if (!ctx.prefetches()) return;
        ctx.prefetch(query, in.q, row0, 0);
        ctx.prefetch(top, in.lse, row0);
        ctx.prefetch(d, in.d, row0);
        ctx.prefetch(d_o, in.d_o, row0, 0);
        if constexpr (Ctx::may_prefetch_first)
            if (ctx.cfg().signature.bias == BiasType::elementwise) ctx.prefetch_bias(in.bias, row0, key0);
    }

  private:
    /// Whether the tile had been read ahead, and has come to where `load` would bring it.
    template <class Ctx>
    FMHA_DEVICE static bool take(Ctx& ctx) {
        if constexpr (Ctx::may_prefetch_first)
            if (ctx.reads_ahead()) {
                ctx.take_queries();
                return true;
            }
        return false;
    }
};

/// W-5 and W-6: ds = dS of the tile, also into dBias, and weights = p of the kept keys. D is p_undrop·Δ and Z is 0 or 1, so
/// that dS = (1/p_undrop) · p · (Z∘dP − D).
template <class Ctx, class Scores, class Gradients, class Rows, class Value>
FMHA_DEVICE void differentiate_scores(Ctx& ctx, Gradients& ds, Scores& weights, const Rows& rows,
                                      Value& value, const BwdHead& head, bool writes_dbias, std::int64_t row0,
                                      std::int64_t key0) {
    const BwdQueries& in = head.in;
    const Dropout& dropout = head.scoring.dropout;
    ctx.fill(ds, 0.0F);
    ctx.product_abt(ds, rows.d_o, value); // W-5
    auto random = ctx.random_bytes();
    if (dropout.on) {
        if (ctx.cfg().signature.is_store_randval)
            ctx.load(random, in.randval, row0, key0);
        else
            ctx.generate(random, dropout.squares, row0, key0);
        ctx.drop(ds, random, dropout.threshold);
    }
    ctx.arrive(rows.d);
    ctx.to_score_gradients(ds, weights, rows.d); // W-6
    const float rescale = ctx.dropout_rescale(dropout);
    if (dropout.on) ctx.map(ds, [rescale](float x, int, int) { return x * rescale; });
    if (writes_dbias) ctx.store(in.dbias, ds, row0, key0);
    if (dropout.on) ctx.drop(weights, random, dropout.threshold);
}

/// Gradients that come through the keys of one tile, from the query heads of the job (W-4 to W-9, W-11). `add_dq(ds, key, h,
/// row0)` takes the part of dQ; `place_of_dq(h)` is where that of a head goes. Its tiles, beside those of `BwdQueryRows`:
///
/// - key (n0, hdim_q), value (n0, hdim_v): operands
/// - weights (m0, n0), an accumulator: logits, then p, then p of the kept keys
/// - ds (m0, n0), an accumulator: dP, then dS
/// - dk (n0, hdim_q), dv (n0, hdim_v): accumulators, which stay from head to head
template <class Ctx, class Key, class Value, class Normalisers, class Deltas, class Rows, class PlaceOfDq,
          class AddDq>
FMHA_DEVICE void differentiate_keys(Ctx& ctx, const BwdArgs& args, const KeyJob& job, const Entry& entry,
                                    std::int64_t key0, Key& key, Value& value, Normalisers& top, Deltas& d,
                                    Rows& spare, PlaceOfDq place_of_dq, AddDq add_dq) {
    const auto& has = ctx.cfg().signature;
    const Tile& tile = ctx.cfg().algorithm.tile;
    const BwdExtents extents = BwdExtents::of(ctx.cfg(), args, entry);
    const bool writes_dbias = has.has_dbias && args.dbias.present();
    const bool stored_bytes = has.has_dropout && has.is_store_randval;

    auto query = ctx.query();
    auto d_o = ctx.output_gradient();
    auto weights = ctx.scores();
    auto ds = ctx.score_gradients();
    auto dk = ctx.key_gradients();
    auto dv = ctx.value_gradients();
    const BwdQueryRows<decltype(query), decltype(d_o), Normalisers, Deltas> rows{query, d_o, top, d};

    const auto keys_of = [&](const BwdArgs& from) {
        return BwdKeys::of(from, extents, entry, job, ctx.kv_head(from.shape, job.h));
    };
    const BwdKeys keys = keys_of(ctx.reread(args));
    ctx.load(key, keys.k, key0, 0);
    ctx.load(value, keys.v, key0, 0);
    ctx.fill(dk, 0.0F);
    ctx.fill(dv, 0.0F);
    FMHA_NO_UNROLL
    for (std::int64_t n = 0; n < ctx.heads_of_job(job.heads); ++n) {
        const BwdHead head =
            BwdHead::of(ctx, ctx.reread(args), extents, entry, job.b, ctx.head_of_job(job.h, n));
        const BwdQueries& in = head.in;
        const QueryTiles visits = QueryTiles::of(head.scoring.mask, key0, tile.n0, entry.seqlen_q, tile.m0);
        const std::int64_t all_tiles = (entry.seqlen_q + tile.m0 - 1) / tile.m0;
        // Decided in its type: nvcc keeps other registers where code stands that it will not need.
        if constexpr (Ctx::may_prefetch_first) {
            ctx.look_at_head(in, [&] { return place_of_dq(head.h); });
            if (has.bias == BiasType::elementwise) ctx.look_at_bias(in.bias, in.dbias, ctx.reads_ahead());
            if (stored_bytes) ctx.look_at_bytes(in.randval, ctx.reads_ahead() && head.scoring.dropout.on);
            if (ctx.reads_ahead() && visits.begin < visits.end)
                rows.prefetch(ctx, in, visits.begin * tile.m0, key0);
            if (stored_bytes) ctx.prefetch_bytes(in.randval, visits.begin * tile.m0, key0);
        }
        FMHA_NO_UNROLL
        for (std::int64_t t = writes_dbias ? 0 : visits.begin; t < (writes_dbias ? all_tiles : visits.end);
             ++t) {
            const std::int64_t row0 = t * tile.m0;
            // Only dBias is written where nothing is seen (W-12); kernels without it have no such tiles.
            if (writes_dbias && (t < visits.begin || t >= visits.end)) {
                ctx.fill(ds, 0.0F);
                ctx.store(in.dbias, ds, row0, key0);
                continue;
            }
            rows.load(ctx, in, row0);
            const bool adds_last = ctx.adds_dq_later() && t > visits.begin;
            if (adds_last && ctx.adds_dq_first()) add_dq(ds, key, head.h, row0 - tile.m0);
            recompute_weights(ctx, weights, query, key, top, spare, args, head, extents.keys, row0, key0);
            // The next tile comes while this one is worked on.
            if (t + 1 < visits.end) rows.prefetch(ctx, in, row0 + tile.m0, key0);
            differentiate_scores(ctx, ds, weights, rows, value, head, writes_dbias, row0, key0);
            if constexpr (Ctx::may_prefetch_first)
                if (stored_bytes) ctx.prefetch_bytes(in.randval, row0 + tile.m0, key0);

            auto kept = ctx.narrow_weights(weights);
            ctx.product_atb(dv, kept, d_o); // W-4
            if (adds_last && !ctx.adds_dq_first()) add_dq(ds, key, head.h, row0 - tile.m0);
            auto gradients = ctx.narrow_gradients(ds);
            ctx.product_atb(dk, gradients, query); // W-8
            const bool adds_now = !ctx.adds_dq_later() || (!ctx.adds_dq_behind() && t + 1 == visits.end);
            if (adds_now) add_dq(gradients, key, head.h, row0);
        }
        if constexpr (Ctx::may_prefetch_first)
            if (ctx.adds_dq_behind() && visits.begin < visits.end)
                add_dq(ds, key, head.h, (visits.end - 1) * tile.m0);
    }
    const BwdArgs& after = ctx.reread(args);
    ctx.map(dk, [f = ctx.gradient_scale(after.score)](float x, int, int) { return x * f; });
    const BwdKeys to = keys_of(after);
    ctx.store(to.dk, dk, key0, 0);
    const Dropout dropout = Dropout::of(after.dropout, has.has_dropout, after.shape.nhead_q, job.b, job.h);
    if (dropout.on) ctx.map(dv, [f = ctx.value_rescale(dropout)](float x, int, int) { return x * f; });
    ctx.store(to.dv, dv, key0, 0);
}

/// Where the part of dQ goes that key tile `t` of a job adds to, of query head `h`.
template <class Ctx>
FMHA_DEVICE Matrix place_of_dq(Ctx& ctx, const BwdArgs& args, const KeyJobs& jobs, const KeyJob& job,
                               const BwdExtents& extents, std::int64_t t, std::int64_t h) {
    const std::int64_t split = ctx.target_split(jobs.sum == DqSum::alone ? t : job.split);
    return DqPartials::of(ctx.cfg(), args, job.b).matrix(h, split, extents.queries, extents.qk_channels);
}

/// The main stage of backward: dK, dV, dBias, and dQ or partial sums of it (W-4 to W-9). One block differentiates the key
/// tiles of its jobs.
template <class Ctx>
FMHA_DEVICE void fmha_bwd_dq_dk_dv(Ctx& ctx, const BwdArgs& args, const BwdItem& item) {
    const auto& cfg = ctx.cfg();
    const std::int64_t n0 = cfg.algorithm.tile.n0;
    const KeyJobs jobs = KeyJobs::of(cfg, args);
    const std::int64_t share = jobs.share(args);
    const std::int64_t first = item.block * share;
    const std::int64_t end = first + share < jobs.size() ? first + share : jobs.size();
    const auto scaled = [scale = ctx.gradient_scale(args.score)](float x, int, int) { return x * scale; };

    auto key = ctx.key();
    auto value = ctx.value();
    auto dq = ctx.query_gradients();
    auto top = ctx.normalisers();
    auto d = ctx.deltas();
    auto spare = ctx.rows();
    FMHA_NO_UNROLL
    for (std::int64_t n = first; n < end; ++n) {
        const KeyJob job = jobs(n, first, share);
        const Entry entry = ctx.entry(args.shape, args.lengths, job.b);
        const BwdExtents extents = BwdExtents::of(cfg, args, entry);
        const std::int64_t tiles = (entry.seqlen_k + n0 - 1) / n0;
        const std::int64_t step = job.stride > 0 ? job.stride : tiles;
        const bool direct = jobs.sum == DqSum::direct;
        if (direct) ctx.fill(dq, 0.0F);
        FMHA_NO_UNROLL
        for (std::int64_t t = job.tile; t < tiles; t += step) {
            const auto place_where_kept = [&](std::int64_t h) {
                return direct ? Matrix() : place_of_dq(ctx, args, jobs, job, extents, t, h);
            };
            differentiate_keys(ctx, args, job, entry, t * n0, key, value, top, d, spare, place_where_kept,
                               [&](auto& gradients, auto& keys, std::int64_t h, std::int64_t row0) {
                                   if (!direct) ctx.fill(dq, 0.0F);
                                   ctx.product_ab(dq, gradients, keys); // W-7
                                   if (direct) return;
                                   ctx.map(dq, scaled);
                                   const Matrix to =
                                       ctx.kept_place(place_of_dq(ctx, args, jobs, job, extents, t, h));
                                   if (jobs.sum == DqSum::alone)
                                       ctx.store(to, dq, row0, 0);
                                   else
                                       ctx.accumulate(to, dq, row0, 0, jobs.sum == DqSum::atomic);
                               });
        }
        if (!direct || entry.seqlen_q == 0) continue;
        ctx.map(dq, scaled);
        ctx.store(matrix_of(args.dq, job.b, job.h, entry.start_q, extents.queries, extents.qk_channels), dq,
                  0, 0);
    }
}

/// The blocks of one launch.
struct BwdGrid {
    std::int64_t blocks;

    FMHA_DEVICE constexpr BwdGrid(const KernelConfig& config, const BwdArgs& args)
        : blocks(KeyJobs::of(config, args).size()) {}

    FMHA_DEVICE constexpr std::int64_t size() const { return blocks; }
    FMHA_DEVICE constexpr BwdItem operator[](std::int64_t n) const { return {n}; }
};

template <>
struct Program<KernelFamily::bwd_dq_dk_dv> {
    using Args = BwdArgs;
    using Item = BwdItem;
    using Grid = BwdGrid;
    static constexpr bool has_products = true;

    /// A block meets many query tiles.
    static std::int64_t rows(const KernelConfig& config, const BwdArgs&, const BwdItem&) {
        return config.algorithm.tile.m0;
    }
    template <class Ctx>
    FMHA_DEVICE static void run(Ctx& ctx, const BwdArgs& args, const BwdItem& item) {
        fmha_bwd_dq_dk_dv(ctx, args, item);
    }
};

} // namespace fmha::kernels
