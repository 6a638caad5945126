#pragma once

#include "dispatcher/types/element_type.hpp"
#include "kernels/programs/key_loop.hpp"

namespace fmha::kernels {

/// A block context that may bring descales of single keys ahead of the scores which need them.
template <class Ctx>
concept BringsDescales = requires(Ctx& ctx) {
    ctx.descales_ahead();
};

/// The keys that the loop works on, where those of an entry lie in pages of 2^page_bits (section 19). Rows of K and V are
/// the keys of the entry. A page that holds whole tiles is looked up once a tile, ahead of its first use; of smaller pages the
/// matrix has the table, and every row is looked up where it is loaded.
struct PrefillMatrices : FwdMatrices {
    static constexpr bool looks_up = true;

    Pages pages;
    std::int64_t hk = 0;
    std::int64_t start_q = 0, seqlen_q = 0;
    std::int32_t page_bits = 0;
    bool gathers = false; ///< pages are smaller than tiles

    template <class Ctx>
    FMHA_DEVICE static PrefillMatrices of(Ctx& ctx, const BatchPrefillArgs& args, const Entry& entry,
                                          const FwdItem& item, std::int64_t hk) {
        const auto& cfg = ctx.cfg();
        const std::int64_t page_size = cfg.signature.page_size;
        PrefillMatrices m{FwdMatrices::of(cfg, args, entry, item.b, item.h, hk),
                          ctx.cache_pages(args.place, item.b),
                          hk,
                          entry.start_q,
                          entry.seqlen_q,
                          bits_of(page_size),
                          page_size % cfg.algorithm.tile.n0 != 0};
        // Slots behind the last key, and pages behind the last one, are nobody's: no padding flag makes a load read them (B-6).
        m.k.rows = m.v.rows = {entry.seqlen_k, entry.seqlen_k, 0};
        m.k.origin = m.k.tensor.offset(0, hk, 0, 0);
        m.v.origin = m.v.tensor.offset(0, hk, 0, 0);
        const int vector = 128 / element_bits(element_types(cfg.signature.data_type, Fp8Flavour::ocp).k);
        m.k = ctx.page_layout(m.k, cfg.signature.kv_layout, vector, page_size, false);
        m.v = ctx.page_layout(m.v, cfg.signature.kv_layout, vector, page_size, true);
        if (m.gathers) {
            m.k.paged.table = m.v.paged.table = m.pages.table;
            m.k.paged.page_bits = m.v.paged.page_bits = m.page_bits;
        }
        return m;
    }

    /// Rows become those of `heads` query heads, which see the first `seen` keys.
    template <class Ctx>
    FMHA_DEVICE void pack(Ctx& ctx, std::int64_t heads, std::int64_t seen) {
        q = ctx.across_heads(q, heads, 1);
        if (ctx.cfg().signature.bias == BiasType::elementwise) bias = ctx.across_heads(bias, heads, 1);
        k.rows = v.rows = {seen, seen, 0};
    }

    /// Where key j lies, which must exist (P-5).
    FMHA_DEVICE KeyPlace place(std::int64_t j) const {
        const auto key = static_cast<std::uint32_t>(j), page = key >> static_cast<std::uint32_t>(page_bits);
        return {pages.table[page], key - (page << static_cast<std::uint32_t>(page_bits))};
    }

    /// The tiles that rows [first, first + count) see under `mask`; none without a key.
    FMHA_DEVICE KeyTiles tiles(const Mask& mask, const QueryRows& rows, std::int64_t n0) const {
        if (k.rows.size <= 0) return {};
        return KeyTiles::of(mask, rows.first, rows.count, k.rows.size, n0);
    }

    template <class Ctx>
    FMHA_DEVICE KeyTile tile(Ctx& ctx, const VisitedTile& visited) const {
        KeyTile out = span(visited.number, ctx.cfg().algorithm.tile.n0);
        out.apart = visited.counted;
        out.rows = visited.rows;
        if (out.apart && !gathers) out.row = 0;
        if (!visited.exists) out.end = out.first;
        if (!visited.exists) return out;
        if (gathers) {
            if constexpr (requires { ctx.look_up(k.paged, out.first, out.end); })
                out.page = ctx.look_up(k.paged, out.first, out.end);
            return out;
        }
        const KeyPlace at = place(out.first);
        out.page = at.page;
        out.slot = at.slot;
        if (ctx.cfg().signature.qscale == QScale::kv_blockscale) out.scale_page = ctx.scale_place(at).page;
        return out;
    }
    FMHA_DEVICE Matrix keys(const KeyTile& tile) const { return of_tile(k, tile); }
    FMHA_DEVICE Matrix values(const KeyTile& tile) const { return of_tile(v, tile); }

    /// Where descales of keys come ahead: those of the rows of a block, once, and of the keys of a tile, ahead of its keys.
    template <BringsDescales Ctx, class Rows>
    FMHA_DEVICE void load_descales(Ctx& ctx, Rows& to, const BatchPrefillArgs& args, const Descales& descale,
                                   std::int64_t row0) const {
        if (!ctx.descales_ahead()) return;
        const std::int64_t rows = seqlen_q - row0;
        const float scale = scales_rows(ctx) ? ctx.to_base2(ctx.scale(args.score)) : 1.0F;
        ctx.set_rows(to,
                     [&](int r) { return r < rows ? of_row(args.quant, descale, row0 + r) * scale : 0.0F; });
    }
    template <BringsDescales Ctx>
    FMHA_DEVICE void prefetch_descales(Ctx& ctx, const BatchPrefillArgs& args, const Descales& descale,
                                       const KeyTile& at) const {
        if (!ctx.descales_ahead()) return;
        const TensorView& of_keys = args.quant.k_descale;
        const auto* first = static_cast<const float*>(of_keys.data) + descale.k_origin;
        const int slots = 1 << page_bits;
        ctx.prefetch_descales(
            of_tile(k, at).paged, static_cast<int>(at.end - at.first), [&](int key, std::uint32_t page) {
                const KeyPlace found = ctx.scale_place(gathers ? KeyPlace{page, key & (slots - 1)}
                                                               : KeyPlace{at.page, at.slot + key});
                return first + of_keys.offset(found.page, 0, found.slot, 0);
            });
    }

    /// scores = scores · the descales of their query row and of their key (15.5); `of_rows` has those that were loaded. Whether the scores
    /// are scaled, too.
    template <class Ctx, class Scores, class Rows>
    FMHA_DEVICE bool descale_tokens(Ctx& ctx, Scores& scores, const BatchPrefillArgs& args,
                                    const Descales& descale, std::int64_t row0, const KeyTile& at,
                                    const Rows& of_rows) const {
        if (ctx.cfg().signature.qscale != QScale::per_token_head) return false;
        if constexpr (BringsDescales<Ctx>)
            if (ctx.descales_ahead()) {
                ctx.descale(scores, of_rows);
                return scales_rows(ctx);
            }
        const QuantArgs& quant = args.quant;
        const std::int64_t rows = seqlen_q - row0, keys = at.end - at.first;
        ctx.map(scores, [&](float s, int r, int c) {
            if (r >= rows || c >= keys) return 0.0F;
            const KeyPlace key = ctx.scale_place(place(at.first + c));
            return s * (of_row(quant, descale, row0 + r) *
                        Descales::read(quant.k_descale,
                                       descale.k_origin + quant.k_descale.offset(key.page, 0, key.slot, 0)));
        });
        return false;
    }

  private:
    /// Whether the descales of rows have the scale of all scores, which a soft-cap multiplies by itself.
    template <class Ctx>
    FMHA_DEVICE static bool scales_rows(Ctx& ctx) {
        return !ctx.cfg().signature.has_logits_soft_cap;
    }
    FMHA_DEVICE float of_row(const QuantArgs& quant, const Descales& descale, std::int64_t row) const {
        return Descales::read(quant.q_descale,
                              descale.q_origin + (start_q + row) * quant.q_descale.row_stride);
    }

    /// log2 of a power of two.
    FMHA_DEVICE static constexpr std::int32_t bits_of(std::int64_t page_size) {
        std::int32_t bits = 0;
        while ((std::int64_t{1} << bits) < page_size) ++bits;
        return bits;
    }

    FMHA_DEVICE Matrix of_tile(Matrix matrix, const KeyTile& tile) const {
        matrix.rows = {tile.end, tile.end, 0};
        if (tile.apart && !gathers) matrix.rows = {tile.rows, tile.rows, 0};
        if (gathers) {
            matrix.paged.looked_up = static_cast<std::int32_t>(tile.page);
            return matrix;
        }
        // Tiles begin at multiples of a vector, so that the first slot becomes row `tile.row` by a shift of whole vectors.
        const std::int64_t shift = tile.slot - tile.row;
        matrix.origin += tile.page * matrix.tensor.batch_stride +
                         (matrix.paged.along_rows ? shift / matrix.paged.vector * matrix.paged.vector_stride
                                                  : shift * matrix.tensor.row_stride);
        return matrix;
    }
};

} // namespace fmha::kernels
