#pragma once

#include "dispatcher/types/element_type.hpp"
#include "kernels/programs/key_loop.hpp"

namespace fmha::kernels {

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
    FMHA_DEVICE KeyTile tile(Ctx& ctx, std::int64_t t, bool exists) const {
        KeyTile out = span(t, ctx.cfg().algorithm.tile.n0);
        if (!exists) out.end = out.first;
        if (!exists) return out;
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

    /// scores = scores · the descales of their query row and of their key (15.5).
    template <class Ctx, class Scores>
    FMHA_DEVICE void descale_tokens(Ctx& ctx, Scores& scores, const BatchPrefillArgs& args,
                                    const Descales& descale, std::int64_t row0, const KeyTile& at) const {
        if (ctx.cfg().signature.qscale != QScale::per_token_head) return;
        const QuantArgs& quant = args.quant;
        const std::int64_t rows = seqlen_q - row0, keys = at.end - at.first;
        ctx.map(scores, [&](float s, int r, int c) {
            if (r >= rows || c >= keys) return 0.0F;
            const KeyPlace key = ctx.scale_place(place(at.first + c));
            return s * (Descales::read(quant.q_descale,
                                       descale.q_origin + (start_q + row0 + r) * quant.q_descale.row_stride) *
                        Descales::read(quant.k_descale,
                                       descale.k_origin + quant.k_descale.offset(key.page, 0, key.slot, 0)));
        });
    }

  private:
    /// log2 of a power of two.
    FMHA_DEVICE static constexpr std::int32_t bits_of(std::int64_t page_size) {
        std::int32_t bits = 0;
        while ((std::int64_t{1} << bits) < page_size) ++bits;
        return bits;
    }

    FMHA_DEVICE Matrix of_tile(Matrix matrix, const KeyTile& tile) const {
        matrix.rows = {tile.end, tile.end, 0};
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
