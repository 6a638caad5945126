#include "harness/data/attention_roles.hpp"
#include "reference/numerics/formats.hpp"

namespace fmha::harness {
namespace {

using roles::Stream;
using roles::stream_q;
using roles::stream_v;

/// The descale blocks of an entry that its logical rows touch: of queries or of keys, the first stored one and their number.
struct BlockRange {
    std::int64_t first, count;
};
BlockRange blocks_of_entry(const Case& c, const EntryGeometry& entry, Stream stream) {
    const bool group = c.mode == Mode::group;
    if (stream == stream_q)
        return {group ? entry.block_start_q : 0, blocks_of(entry.seqlen_q, c.block_scale_q)};
    return {group ? entry.block_start_k : 0, blocks_of(entry.seqlen_k, keys_of_block(c))};
}

TensorLayout descale_layout(const Case& c, const Geometry& g, Stream stream) {
    const std::int64_t heads = stream == stream_q ? c.nhead_q : c.nhead_k;
    const StrideMaker strides(c);
    if (c.qscale == QScale::pertensor)
        return {.type = ElementType::fp32, .col_stride = 0, .segment_elements = 1, .axes = 0};
    if (c.qscale == QScale::blockscale) {
        TensorLayout layout = strides.make(ElementType::fp32, g.stored_batch, heads,
                                           stream == stream_q ? g.blocks_q : g.blocks_k, 1, false);
        layout.axes = 3;
        return layout;
    }
    // Stored [channel][key block] for V; the view's row is the key block.
    if (stream == stream_v)
        return strides.make_transposed(ElementType::e8m0, g.stored_batch, heads, g.blocks_k, c.hdim_v, false);
    return strides.make(ElementType::e8m0, g.stored_batch, heads, stream == stream_q ? g.rows_q : g.rows_k,
                        blocks_of(c.hdim_q, 32), false);
}

/// Calls `visit(b, h, stored row, logical row, columns)` for every row of descales.
template <class Visit>
void each_descale_row(const DataSource& source, Stream stream, Visit&& visit) {
    const Case& c = source.c;
    const std::int64_t heads = stream == stream_q ? c.nhead_q : c.nhead_k;
    if (c.qscale == QScale::pertensor) return visit(0, 0, 0, 0, 1);
    each_entry(source, [&](std::int64_t b, const EntryGeometry& entry) {
        const bool by_row = c.qscale == QScale::mx && stream != stream_v;
        const BlockRange blocks = by_row ? BlockRange{stream == stream_q ? entry.start_q : entry.start_k,
                                                      stream == stream_q ? entry.seqlen_q : entry.seqlen_k}
                                         : blocks_of_entry(c, entry, stream);
        const std::int64_t columns = c.qscale != QScale::mx ? 1
                                     : stream == stream_v   ? c.hdim_v
                                                            : blocks_of(c.hdim_q, 32);
        for (std::int64_t h = 0; h < heads; ++h)
            for (std::int64_t n = 0; n < blocks.count; ++n) visit(b, h, blocks.first + n, n, columns);
    });
}

void fill_descale(const DataSource& source, GuardedTensor& tensor, Stream stream) {
    each_descale_row(source, stream, [&](auto b, auto h, auto stored, auto n, auto columns) {
        for (std::int64_t column = 0; column < columns; ++column) {
            const bool of_channel = stream == stream_v;
            tensor.set_code(
                b, h, stored, column,
                source.c.qscale != QScale::mx
                    ? reference::encode(ElementType::fp32, source.fill.descale(stream, b, h, n))
                    : source.fill.mx_scale(stream, b, h, of_channel ? column : n, of_channel ? n : column));
        }
    });
}

void rows_of_descale(const DataSource& source, Stream stream, const RowVisit& visit) {
    each_descale_row(source, stream, [&](auto b, auto h, auto stored, auto, auto columns) {
        visit({b, h, stored, columns});
    });
}

} // namespace

namespace roles {

TensorLayout layout_q_descale(const Case& c, const Geometry& g) {
    return descale_layout(c, g, stream_q);
}
TensorLayout layout_k_descale(const Case& c, const Geometry& g) {
    return descale_layout(c, g, stream_k);
}
TensorLayout layout_v_descale(const Case& c, const Geometry& g) {
    return descale_layout(c, g, stream_v);
}

void fill_q_descale(const DataSource& source, GuardedTensor& tensor) {
    fill_descale(source, tensor, stream_q);
}
void fill_k_descale(const DataSource& source, GuardedTensor& tensor) {
    fill_descale(source, tensor, stream_k);
}
void fill_v_descale(const DataSource& source, GuardedTensor& tensor) {
    fill_descale(source, tensor, stream_v);
}

void rows_of_q_descale(const DataSource& source, const RowVisit& visit) {
    rows_of_descale(source, stream_q, visit);
}
void rows_of_k_descale(const DataSource& source, const RowVisit& visit) {
    rows_of_descale(source, stream_k, visit);
}
void rows_of_v_descale(const DataSource& source, const RowVisit& visit) {
    rows_of_descale(source, stream_v, visit);
}

} // namespace roles
} // namespace fmha::harness
