#include "harness/data/prefill_tensors.hpp"

#include "harness/data/cache_roles.hpp"
#include "reference/numerics/formats.hpp"

namespace fmha::harness {
namespace {

using namespace roles;
using Args = BatchPrefillArgs;
using Tensor = GuardedTensor;

/// Descales of pages and of tokens (15.4, 15.5).
bool has_page_scales(const Case& c) {
    return c.qscale == QScale::kv_blockscale || c.qscale == QScale::per_token_head;
}
bool per_token(const Case& c) {
    return c.qscale == QScale::per_token_head;
}

/// One value a row: of every query, page or slot of a head, or a single one.
TensorLayout layout_scales(const Case& c, const Geometry& g, Stream stream) {
    const CachePlaces places(c);
    if (stream == stream_q)
        return per_token(c)
                   ? StrideMaker(c).make_statistic(1, c.nhead_q, g.rows_q)
                   : TensorLayout{
                         .type = ElementType::fp32, .col_stride = 0, .segment_elements = 1, .axes = 0};
    const StrideMaker strides = StrideMaker::of_cache(c);
    if (!per_token(c)) return strides.make_statistic(places.slots(), c.nhead_k, 1);
    return stream == stream_k ? strides.make_statistic(places.slots(), c.nhead_k, places.rows())
                              : strides.make_statistic(1, c.nhead_k, 1);
}

/// Calls visit(slot, h, row, b, n): which of its descales, number n of entry b, is stored where.
template <class Visit>
void each_scale(const DataSource& source, Stream stream, Visit&& visit) {
    const Case& c = source.c;
    const CachePlaces places(c);
    if (stream == stream_q && !per_token(c)) return visit(0, 0, 0, 0, 0);
    if (stream == stream_v && per_token(c)) {
        for (std::int64_t h = 0; h < c.nhead_k; ++h) visit(0, h, 0, 0, 0);
        return;
    }
    for (std::int64_t b = 0; b < c.batch; ++b) {
        const EntryGeometry& entry = source.geometry.entries[static_cast<std::size_t>(b)];
        if (stream == stream_q) {
            for (std::int64_t h = 0; h < c.nhead_q; ++h)
                for (std::int64_t i = 0; i < entry.seqlen_q; ++i) visit(0, h, entry.start_q + i, b, i);
            continue;
        }
        const std::int64_t step = per_token(c) ? 1 : c.cache.page_size;
        for (std::int64_t j = 0; j < entry.seqlen_k; j += step) {
            const CachePlaces::Place at = places.of_key(b, j);
            for (std::int64_t h = 0; h < c.nhead_k; ++h)
                visit(at.slot, h, per_token(c) ? at.row : 0, places.owner(b, j), j / step);
        }
    }
}

void fill_scales(const DataSource& source, Tensor& tensor, Stream stream) {
    each_scale(source, stream, [&](auto slot, auto h, auto row, auto b, auto n) {
        tensor.set_code(slot, h, row, 0,
                        reference::encode(ElementType::fp32, source.fill.descale(stream, b, h, n)));
    });
}
void rows_of_scales(const DataSource& source, Stream stream, const RowVisit& visit) {
    each_scale(source, stream, [&](auto slot, auto h, auto row, auto, auto) { visit({slot, h, row, 1}); });
}

template <Stream stream, TensorView QuantArgs::*member>
constexpr Role<Args> scales_role(std::string_view name) {
    return {.name = name,
            .flow = Flow::in,
            .present = has_page_scales,
            .layout = [](const Case& c, const Geometry& g) { return layout_scales(c, g, stream); },
            .fill = [](const DataSource& source, Tensor& tensor) { fill_scales(source, tensor, stream); },
            .logical = [](const DataSource& source,
                          const RowVisit& visit) { rows_of_scales(source, stream, visit); },
            .bind = [](Args& args, const Tensor& tensor) { args.quant.*member = tensor.view(); }};
}

constexpr std::array<Role<Args>, 7> own{{
    scales_role<stream_q, &QuantArgs::q_descale>("q_descale"),
    scales_role<stream_k, &QuantArgs::k_descale>("k_descale"),
    scales_role<stream_v, &QuantArgs::v_descale>("v_descale"),
    block_table_role<Args>,
    {"kv_indptr", Flow::in, has_page_list, layout_starts, fill_kv_indptr, rows_of_starts,
     [](Args& args, const Tensor& tensor) { args.place.kv_indptr = array_of(tensor); }},
    {"kv_page_indices", Flow::in, has_page_list, layout_kv_page_indices, fill_kv_page_indices,
     rows_of_kv_page_indices,
     [](Args& args, const Tensor& tensor) { args.place.kv_page_indices = array_of(tensor); }},
    {"kv_last_page_lens", Flow::in, [](const Case& c) { return has_page_list(c) && c.cache.page_size > 1; },
     layout_entries, fill_kv_last_page_lens, rows_of_kv_last_page_lens,
     [](Args& args, const Tensor& tensor) { args.place.kv_last_page_lens = array_of(tensor); }},
}};

constexpr auto table = joined(output_roles<Args>, own, attention_roles<Args, always>, chain_roles<Args>);

} // namespace

template <>
std::span<const Role<BatchPrefillArgs>> roles_of<BatchPrefillArgs>() {
    return table;
}

template <>
void bind_values<BatchPrefillArgs>(const DataSource& source, BatchPrefillArgs& args) {
    bind_attention(source, args);
}

} // namespace fmha::harness
