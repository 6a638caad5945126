#include "reference/matrix/key_runs.hpp"

#include <algorithm>
#include <cstddef>

namespace fmha::reference::matrix {
namespace {

/// Keys of one page, or of one slot of a cache that has no pages.
struct Run {
    std::int64_t page = 0, first_slot = 0;
    Eigen::Index at = 0, size = 0; ///< rows of the block
};

/// Calls `visit(run)` for the runs that hold the keys first … first + count − 1, in order.
template <class Visit>
void each_run(const AttentionArgs& args, const EntryExtent& extent, std::int64_t first, Eigen::Index count,
              Visit&& visit) {
    const KvPlace& place = args.place;
    if (place.page_size == 0) {
        visit(Run{place.cache_batch_idx[extent.b], first, 0, count});
        return;
    }
    const std::int32_t* pages = place.block_table + extent.b * place.block_table_stride;
    std::int64_t shift = place.is_gappy ? args.lengths.seqstart_k[extent.b] : 0;
    if (place.lookup == KvLookup::sglang_1d) {
        pages = place.kv_page_indices + place.kv_indptr[extent.b];
        shift = 0;
    }
    pages += (shift + first) / place.page_size;
    std::int64_t slot = (shift + first) % place.page_size;
    for (Eigen::Index done = 0; done < count; ++pages, slot = 0) {
        const auto size = std::min<Eigen::Index>(count - done, place.page_size - slot);
        visit(Run{*pages, slot, done, size});
        done += size;
    }
}

/// The view of one page, moved to `element`, with other strides.
TensorView part_of(const TensorView& view, std::int64_t element, std::int64_t row_stride,
                   std::int64_t col_stride) {
    TensorView part = view;
    part.data = static_cast<std::byte*>(view.data) + element_bytes(view.type, element);
    part.batch_stride = part.head_stride = 0;
    part.row_stride = row_stride;
    part.col_stride = col_stride;
    return part;
}

/// Elements of 16 bytes, those of a unit of B-3.
std::int64_t unit_of(const TensorView& view) {
    return 16 / element_bytes(view.type);
}

/// Of the unit matrix of a page, rows of slots and columns of channels.
void decode_key_units(const TensorView& k, const KvPlace& place, std::int64_t hk, const Run& run, Block out) {
    const std::int64_t v = unit_of(k);
    const std::int64_t base = run.page * k.batch_stride + hk * k.head_stride + run.first_slot * v;
    for (Eigen::Index c = 0; c < out.cols(); c += v)
        decode_block(part_of(k, base + c * place.page_size, v, 1), 0, 0, 0, 0,
                     out.block(run.at, c, run.size, std::min<Eigen::Index>(v, out.cols() - c)));
}

void decode_value_units(const TensorView& values, std::int64_t hk, const Run& run, Block out) {
    const std::int64_t v = unit_of(values);
    const std::int64_t base = run.page * values.batch_stride + hk * values.head_stride;
    for (Eigen::Index r = 0; r < run.size;) {
        const std::int64_t slot = run.first_slot + r, inside = slot % v;
        const auto size = std::min<Eigen::Index>(run.size - r, v - inside);
        decode_block(part_of(values, base + (slot - inside) * out.cols() + inside, 1, v), 0, 0, 0, 0,
                     out.middleRows(run.at + r, size));
        r += size;
    }
}

/// One factor of all keys of a run, or one of each.
void descale(QScale mode, const TensorView& scale, std::int64_t hk, const Run& run, bool of_keys, Block out) {
    if (!scale.present()) return;
    auto rows = out.middleRows(run.at, run.size);
    if (mode == QScale::pertensor) rows *= decode_element(scale, 0, 0, 0, 0);
    if (mode == QScale::kv_blockscale) rows *= decode_element(scale, run.page, hk, 0, 0);
    if (mode != QScale::per_token_head) return;
    if (!of_keys) {
        rows *= decode_element(scale, 0, hk, 0, 0);
        return;
    }
    Matrix factors(run.size, 1);
    decode_block(scale, run.page, hk, run.first_slot, 0, factors);
    rows.array().colwise() *= factors.col(0).array();
}

} // namespace

bool lies_in_cache(const AttentionArgs& args) {
    return args.place.page_size > 0 || args.place.cache_batch_idx != nullptr;
}

std::int64_t listed_keys(const KvPlace& place, std::int64_t b) {
    const std::int64_t begin = place.kv_indptr[b], end = place.kv_indptr[b + 1];
    if (begin == end) return 0;
    const std::int64_t missing =
        place.kv_last_page_lens == nullptr ? 0 : place.page_size - place.kv_last_page_lens[b];
    return (end - begin) * place.page_size - missing;
}

void load_cached_keys(const AttentionArgs& args, const EntryExtent& extent, std::int64_t hk,
                      std::int64_t first, Block out) {
    each_run(args, extent, first, out.rows(), [&](const Run& run) {
        if (args.place.layout == KvLayout::vectorized)
            decode_key_units(args.k, args.place, hk, run, out);
        else
            decode_block(args.k, run.page, hk, run.first_slot, 0, out.middleRows(run.at, run.size));
        descale(args.quant.qscale, args.quant.k_descale, hk, run, true, out);
    });
}

void load_cached_values(const AttentionArgs& args, const EntryExtent& extent, std::int64_t hk,
                        std::int64_t first, Block out) {
    each_run(args, extent, first, out.rows(), [&](const Run& run) {
        if (args.place.layout == KvLayout::vectorized)
            decode_value_units(args.v, hk, run, out);
        else
            decode_block(args.v, run.page, hk, run.first_slot, 0, out.middleRows(run.at, run.size));
        descale(args.quant.qscale, args.quant.v_descale, hk, run, false, out);
    });
}

} // namespace fmha::reference::matrix
