#include "harness/data/geometry.hpp"

#include "dispatcher/types/error.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fmha::harness {
namespace {

std::int64_t pick(const std::vector<std::int64_t>& lengths, std::int64_t entry, std::int64_t batch,
                  const char* what) {
    const auto n = static_cast<std::int64_t>(lengths.size());
    if (n != 1 && n != batch)
        throw InputError(fmt::format("{} has {} values; allowed: 1 or the batch, {}", what, n, batch));
    return lengths[static_cast<std::size_t>(n == 1 ? 0 : entry)];
}

std::vector<EntryGeometry> make_entries(const Case& c) {
    std::vector<EntryGeometry> entries;
    const auto& physical_q = c.physical_q.empty() ? c.seqlen_q : c.physical_q;
    const auto& physical_k = c.physical_k.empty() ? c.seqlen_k : c.physical_k;
    EntryGeometry next;
    std::int64_t widest_q = 0, widest_k = 0;
    for (std::int64_t b = 0; b < c.batch; ++b) {
        next.seqlen_q = pick(c.seqlen_q, b, c.batch, "seqlen_q");
        next.seqlen_k = pick(c.seqlen_k, b, c.batch, "seqlen_k");
        next.physical_q = std::max(next.seqlen_q, pick(physical_q, b, c.batch, "physical_q"));
        next.physical_k = std::max(next.seqlen_k, pick(physical_k, b, c.batch, "physical_k"));
        next.skipped = c.mode == Mode::group && c.min_seqlen_q > 0 && next.seqlen_q <= c.min_seqlen_q;
        widest_q = std::max(widest_q, next.physical_q);
        widest_k = std::max(widest_k, next.physical_k);
        entries.push_back(next);
        if (c.mode == Mode::batch) continue;
        next.start_q += next.physical_q;
        next.start_k += next.physical_k;
        next.block_start_q += blocks_of(next.physical_q, c.block_scale_q);
        next.block_start_k += blocks_of(next.physical_k, keys_of_block(c));
    }
    if (c.mode == Mode::batch)
        for (EntryGeometry& entry : entries) {
            entry.physical_q = widest_q;
            entry.physical_k = widest_k;
        }
    return entries;
}

} // namespace

std::int64_t keys_of_block(const Case& c) {
    return c.qscale == QScale::mx ? 32 : c.block_scale_k;
}

Geometry geometry_of(const Case& c, Fp8Flavour flavour) {
    Geometry g;
    g.entries = make_entries(c);
    g.types = element_types(c.data_type, flavour);
    for (const EntryGeometry& entry : g.entries) {
        g.max_seqlen_q = std::max(g.max_seqlen_q, entry.seqlen_q);
        g.max_seqlen_k = std::max(g.max_seqlen_k, entry.seqlen_k);
    }
    const bool group = c.mode == Mode::group;
    const EntryGeometry& last = g.entries.back();
    g.stored_batch = group ? 1 : c.batch;
    g.rows_q = last.start_q + last.physical_q;
    g.rows_k = last.start_k + last.physical_k;
    g.row_keys = group ? g.max_seqlen_k : g.rows_k;
    g.blocks_q = last.block_start_q + blocks_of(last.physical_q, c.block_scale_q);
    g.blocks_k = last.block_start_k + blocks_of(last.physical_k, keys_of_block(c));
    return g;
}

std::int64_t StrideMaker::padded(std::int64_t extent, ElementType type) const {
    const std::int64_t with = extent + padding_;
    return type == ElementType::fp4 ? with + with % 2 : with;
}

TensorLayout StrideMaker::make(ElementType type, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                               std::int64_t cols, bool seq_major) const {
    TensorLayout layout;
    layout.type = type;
    const std::int64_t inner = padded(cols, type);
    const std::int64_t outer = padded(inner * (seq_major ? heads : rows), type);
    layout.row_stride = seq_major ? outer : inner;
    layout.head_stride = seq_major ? inner : outer;
    layout.batch_stride = padded(outer * (seq_major ? rows : heads), type);
    layout.segment_elements = std::max<std::int64_t>(layout.batch_stride * batch, 1);
    if (group_) layout.batch_stride = 0;
    layout.batches = batch;
    layout.heads = heads;
    layout.rows = rows;
    layout.columns = cols;
    layout.seq_major = seq_major;
    return layout;
}

TensorLayout StrideMaker::make_transposed(ElementType type, std::int64_t batch, std::int64_t heads,
                                          std::int64_t rows, std::int64_t cols, bool seq_major) const {
    TensorLayout layout = make(type, batch, heads, cols, rows, seq_major);
    std::swap(layout.row_stride, layout.col_stride);
    std::swap(layout.rows, layout.columns);
    layout.transposed = true;
    return layout;
}

TensorLayout StrideMaker::make_statistic(std::int64_t batch, std::int64_t heads, std::int64_t rows) const {
    TensorLayout layout = make(ElementType::fp32, batch, 1, heads, rows, false);
    layout.head_stride = layout.row_stride;
    layout.row_stride = 1;
    layout.heads = heads;
    layout.rows = rows;
    layout.columns = 1;
    layout.axes = 3;
    return layout;
}

TensorLayout array_layout(ElementType type, std::int64_t columns) {
    TensorLayout layout = array_layout(type, 1, columns);
    layout.axes = 1;
    return layout;
}

TensorLayout array_layout(ElementType type, std::int64_t rows, std::int64_t columns) {
    return {.type = type,
            .row_stride = columns,
            .segment_elements = rows * columns,
            .rows = rows,
            .columns = columns,
            .axes = 2};
}

TensorLayout widened(const Case& c, TensorLayout layout) {
    if (c.wide_batch_stride < layout.batch_stride)
        throw InputError(fmt::format("wide_batch_stride {} is below the {} elements of one entry of {}",
                                     c.wide_batch_stride, layout.batch_stride, c.wide_tensor));
    layout.segments = layout.batches;
    layout.segment_elements = layout.batch_stride;
    layout.segment_stride = layout.batch_stride = c.wide_batch_stride;
    return layout;
}

void require_wide_tensor(const Case& c, std::span<const std::string_view> strided) {
    if (strided.empty())
        throw InputError(
            fmt::format("wide_tensor={}: this case has no tensor whose entries, slots or pages lie "
                        "a stride apart",
                        c.wide_tensor));
    if (std::ranges::find(strided, c.wide_tensor) == strided.end())
        throw InputError(fmt::format("wide_tensor={}: expected a tensor of this case whose entries, slots or "
                                     "pages lie a stride apart: {}",
                                     c.wide_tensor, fmt::join(strided, ", ")));
}

} // namespace fmha::harness
