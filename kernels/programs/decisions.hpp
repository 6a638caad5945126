#pragma once

#include "kernels/programs/head_rows.hpp"
#include "kernels/programs/mask.hpp"
#include "kernels/programs/matrix.hpp"
#include "kernels/programs/pages.hpp"
#include "kernels/programs/philox.hpp"

namespace fmha::kernels {

inline constexpr float never =
    -__builtin_inff(); ///< logit of a key that is not seen, LSE of a row without keys
inline constexpr float ln2 = 0.693147180559945309F;

/// The scalar decisions of attention that are the same on every target. A block context derives from this struct; a test
/// context hides single members to make a kernel wrong in one known way.
struct Decisions {
    FMHA_DEVICE Entry entry(const Shape& shape, const LengthArrays& lengths, std::int64_t b) const {
        return Entry::of(shape, lengths, b);
    }

    /// Without keys; split-KV takes no query-side lengths but the physical ones (N-6).
    FMHA_DEVICE Entry queries(const Shape& shape, const LengthArrays& lengths, std::int64_t b) const {
        return Entry::of_queries(shape, lengths, b);
    }

    /// Over a cache.
    FMHA_DEVICE Entry cached_entry(const Shape& shape, const LengthArrays& lengths, const KvPlace& place,
                                   std::int64_t b) const {
        return Pages::entry_of(shape, lengths, place, b);
    }
    /// Where key j of an entry lies; j exists (P-5).
    FMHA_DEVICE KeyPlace key_place(const Pages& pages, std::int64_t j) const { return pages.at(j); }
    FMHA_DEVICE KeyPlace key_place(const PreparedPages& pages, std::int64_t j) const { return pages.at(j); }

    /// KV head that serves query head h (H-1).
    FMHA_DEVICE std::int64_t kv_head(const Shape& shape, std::int64_t h) const {
        if (shape.nhead_q == shape.nhead_k) return h; // most often, and a division takes a GPU long
        return h / (shape.nhead_q / shape.nhead_k);
    }
    FMHA_DEVICE Mask mask(const Mask& mask) const { return mask; }
    /// The heads of the rows of a tile: for masks and sink logits, and for stores.
    FMHA_DEVICE HeadRows scored_rows(const HeadRows& heads) const { return heads; }
    FMHA_DEVICE HeadRows stored_rows(const HeadRows& heads) const { return heads; }
    FMHA_DEVICE float alibi_slope(const ScoreArgs& score, std::int64_t b, std::int64_t h) const {
        return score.alibi_slopes[b * score.alibi_stride + h];
    }
    FMHA_DEVICE float scale(const ScoreArgs& score) const { return score.scale_s; }

    /// A natural-log quantity in the base-2 units of the scores.
    FMHA_DEVICE float to_base2(float natural) const { return natural * 1.44269504088896341F; }

    /// The sink logit's part of a row's total when it is the running maximum (K-6).
    FMHA_DEVICE float sink_mass(float sink) const { return sink > never ? 1.0F : 0.0F; }

    /// 1/p_undrop, applied once to the output row (D-2).
    FMHA_DEVICE float dropout_rescale(const Dropout& dropout) const {
        return dropout.on ? 1.0F / dropout.kept : 1.0F;
    }

    /// LSE of a row from its maximum in natural units and ln of its total (F-7).
    FMHA_DEVICE float lse(float maximum, float log_total) const { return maximum + log_total; }

    /// The keys that split s owns (S-1).
    FMHA_DEVICE KeyRange split_keys(const Partials& partials, std::int64_t s, std::int64_t seqlen_k) const {
        const auto n = static_cast<std::uint32_t>(partials.num_splits);
        const std::int64_t width = (static_cast<std::uint32_t>(seqlen_k) + n - 1U) / n;
        const std::int64_t begin = s * width < seqlen_k ? s * width : seqlen_k;
        return {begin, begin + width < seqlen_k ? begin + width : seqlen_k};
    }
    /// K, or V, as its rows lie in a page (B-3): slots of channels, or pieces of `vector` elements.
    FMHA_DEVICE Matrix page_layout(Matrix matrix, KvLayout layout, int vector, std::int64_t page_size,
                                   bool is_value) const {
        if (layout != KvLayout::vectorized) return matrix;
        matrix.tensor.row_stride = is_value ? 1 : vector;
        matrix.tensor.col_stride = is_value ? vector : 1;
        matrix.paged.vector = vector;
        matrix.paged.vector_stride = (is_value ? matrix.cols.size : page_size) * vector;
        matrix.paged.along_rows = is_value;
        return matrix;
    }
    /// The place whose descale a key at `place` has (Q-3, 15.5).
    FMHA_DEVICE KeyPlace scale_place(const KeyPlace& place) const { return place; }

    /// The row of one head of a matrix, and below it those of the next `heads` − 1, whose tensor's heads are `distance` apart.
    FMHA_DEVICE Matrix across_heads(Matrix matrix, std::int64_t heads, std::int64_t distance) const {
        matrix.tensor.row_stride = distance * matrix.tensor.head_stride;
        matrix.rows = {heads, heads, heads};
        return matrix;
    }

    /// How many splits are combined.
    FMHA_DEVICE std::int64_t splits(const Partials& partials) const { return partials.num_splits; }
    /// The sink logit of one split: none, because combining adds it once (S-2).
    FMHA_DEVICE float partial_sink(float) const { return never; }
    /// Where split s of query head h lies among the heads of the partial results (S-3).
    FMHA_DEVICE std::int64_t partial_head(const SplitKvArgs& args, std::int64_t h, std::int64_t s) const {
        return h * args.partials.num_splits + s;
    }
    /// The exponent of a split's share of its row, in natural units (S-4).
    FMHA_DEVICE float below_top(float lse, float top) const { return lse - top; }
    /// The factor of the sum over splits in the end.
    FMHA_DEVICE float row_scale(float scale_o, float total) const { return scale_o / total; }

    /// C(b), the keys that entry b has in the cache before anything is appended (V-1).
    FMHA_DEVICE std::int64_t cached(const AppendKvArgs& args, std::int64_t b) const {
        return args.lengths.seqlen_k[b];
    }
    /// How many keys an entry can have: the rows of its slot, or of the pages in its row of the block table (V-3).
    FMHA_DEVICE std::int64_t cache_room(const AppendKvArgs& args) const {
        const KvPlace& place = args.place;
        return place.block_table != nullptr ? place.block_table_stride * place.page_size
                                            : args.shape.seqlen_k;
    }
    /// Where the keys of entry b go (V-2).
    FMHA_DEVICE Pages cache_pages(const KvPlace& place, std::int64_t b) const {
        return Pages::of(place, b, 0);
    }
    /// Which channels make pairs, how many, and where their angles are (V-4).
    FMHA_DEVICE RopeArgs rope(const RopeArgs& rope) const { return rope; }
    /// The position of the first new key, and of the first query (V-5).
    FMHA_DEVICE std::int64_t rotary_position(std::int64_t cached) const { return cached; }
    /// Whether the next query rows have the next positions (V-5).
    FMHA_DEVICE bool queries_advance(const AppendKvArgs& args) const { return args.has_mask; }
};

} // namespace fmha::kernels
