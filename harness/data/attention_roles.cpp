#include "harness/data/attention_roles.hpp"

#include "dispatcher/types/mask_args.hpp"
#include "harness/cases/cache_case.hpp"
#include "harness/cases/value_order.hpp"
#include "harness/data/cache_places.hpp"
#include "harness/data/fwd_tensors.hpp"
#include "reference/numerics/formats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace fmha::harness {
namespace {

void append_slopes_of_power_of_two(std::int64_t heads, std::int64_t step, std::int64_t limit,
                                   std::vector<float>& into) {
    for (std::int64_t m = 0; m < heads && static_cast<std::int64_t>(into.size()) < limit; m += step)
        into.push_back(
            static_cast<float>(std::exp2(-8.0 * static_cast<double>(m + 1) / static_cast<double>(heads))));
}

/// A 16-bit float with so many mantissa bits, from a double in its normal range: rounded to nearest, ties to even, in the bits of the
/// double. nullopt outside of that range.
template <int mantissa, int bias>
std::optional<std::uint32_t> narrowed(double value) {
    constexpr int dropped = 52 - mantissa;
    constexpr std::uint64_t largest = 0x7FFFU - (std::uint64_t{1} << mantissa); // of its finite codes
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t magnitude = bits << 1U >> 1U;
    const std::uint64_t rounded =
        (magnitude + (std::uint64_t{1} << (dropped - 1)) - 1 + (magnitude >> dropped & 1U)) >> dropped;
    constexpr std::uint64_t rebias = static_cast<std::uint64_t>(1023 - bias) << mantissa;
    const std::uint64_t code = rounded - rebias;
    if (magnitude >> 52U <= 1023 - bias || code > largest) return std::nullopt;
    return static_cast<std::uint32_t>(code | bits >> 63U << 15U);
}

/// Most of the time of filling large tensors passes here.
std::uint32_t encode(ElementType type, double value) {
    std::optional<std::uint32_t> code;
    if (type == ElementType::fp16) code = narrowed<10, 15>(value);
    if (type == ElementType::bf16) code = narrowed<7, 127>(value);
    return code ? *code : reference::encode(type, value);
}

using roles::Stream;
using roles::stream_q;
using roles::stream_v;

std::int64_t block_length(const Case& c, Stream stream) {
    return stream == stream_q ? c.block_scale_q : c.block_scale_k;
}

/// The factor from the stored value of an element to its real value.
double descale_at(const DataSource& source, Stream stream, std::int64_t b, std::int64_t h,
                  std::int64_t position, std::int64_t column) {
    const Case& c = source.c;
    switch (c.qscale) {
    case QScale::pertensor:
        return source.fill.descale(stream, 0, 0, 0);
    case QScale::blockscale:
        return source.fill.descale(stream, b, h, position / block_length(c, stream));
    case QScale::mx:
        return reference::decode(ElementType::e8m0,
                                 stream == stream_v
                                     ? source.fill.mx_scale(stream, b, h, column, position / 32)
                                     : source.fill.mx_scale(stream, b, h, position, column / 32));
    case QScale::kv_blockscale: // of a page of the entry, wherever it lies
        return stream == stream_q ? source.fill.descale(stream, 0, 0, 0)
                                  : source.fill.descale(stream, b, h, position / c.cache.page_size);
    case QScale::per_token_head:
        return stream == stream_v ? source.fill.descale(stream, 0, h, 0)
                                  : source.fill.descale(stream, b, h, position);
    case QScale::no_scale:
        break;
    }
    return 1.0;
}

enum class Side : std::uint8_t { queries, keys };

/// Calls `visit(b, h, stored row, logical row, entry)` for every needed query of every entry, or every needed key.
template <class Visit>
void each_row_of_side(const DataSource& source, Side side, std::int64_t heads, Visit&& visit) {
    each_entry(source, [&](std::int64_t b, const EntryGeometry& entry) {
        for (std::int64_t h = 0; h < heads; ++h) {
            if (side == Side::queries)
                source.needed.each_query(b, h, entry.seqlen_q,
                                         [&](std::int64_t i) { visit(b, h, entry.start_q + i, i, entry); });
            else if (source.needed.has_key_head(b, h))
                for (std::int64_t j = 0; j < entry.seqlen_k; ++j) visit(b, h, entry.start_k + j, j, entry);
        }
    });
}

/// Rows of a tensor with one row a query of an entry, or a key.
void rows_of_side(const DataSource& source, Side side, std::int64_t heads, std::int64_t columns,
                  const RowVisit& visit) {
    each_row_of_side(source, side, heads, [&](auto b, auto h, auto stored, auto, const EntryGeometry&) {
        visit({b, h, stored, columns});
    });
}

/// `values(b, h, logical row, entry, row)` gives the real values of a row.
template <class Values>
void fill_side(const DataSource& source, GuardedTensor& tensor, Stream stream, std::int64_t heads,
               std::int64_t columns, Values&& values) {
    std::vector<double> row(static_cast<std::size_t>(columns));
    each_row_of_side(source, stream == stream_q ? Side::queries : Side::keys, heads,
                     [&](auto b, auto h, auto stored, auto i, const EntryGeometry& entry) {
                         values(b, h, i, entry, std::span<double>(row));
                         roles::encode_row(source, tensor, stream, {b, h, i, b, stored}, row);
                     });
}

/// Rows of outputs: `columns(entry)` each.
template <class Columns>
void rows_of_output(const DataSource& source, const RowVisit& visit, Columns columns) {
    const std::int64_t first = first_row(source.c);
    each_entry(source, [&](std::int64_t b, const EntryGeometry& entry) {
        if (entry.skipped) return;
        for (std::int64_t h = 0; h < source.c.nhead_q; ++h)
            source.needed.each_query(b, h, entry.seqlen_q, [&](std::int64_t i) {
                if (i >= first) visit({b, h, entry.start_q + i, columns(entry)});
            });
    });
}

/// Calls `visit(b, h, stored row, i, keys)` for every stored row of the bias once. A bias that all entries share serves the
/// longest of them; a packed one has rows of its own for each entry.
template <class Visit>
void each_bias_row(const DataSource& source, Visit&& visit) {
    const Case& c = source.c;
    const Geometry& g = source.geometry;
    const bool shared = c.mode == Mode::batch && c.bias_rank < 2;
    each_entry(source, [&](std::int64_t b, const EntryGeometry& entry) {
        if (shared && b > 0) return;
        const std::int64_t rows = shared ? g.max_seqlen_q : entry.seqlen_q;
        const std::int64_t keys = shared ? g.max_seqlen_k : entry.seqlen_k;
        for (std::int64_t h = 0; h < (c.bias_rank >= 1 ? c.nhead_q : 1); ++h)
            for (std::int64_t i = 0; i < rows; ++i) visit(b, h, entry.start_q + i, i, keys);
    });
}

} // namespace

std::vector<float> default_alibi_slopes(std::int64_t heads) {
    std::vector<float> slopes;
    std::int64_t power = 1;
    while (power * 2 <= heads) power *= 2;
    append_slopes_of_power_of_two(power, 1, heads, slopes);
    append_slopes_of_power_of_two(power * 2, 2, heads, slopes);
    return slopes;
}

namespace roles {

void encode_row(const DataSource& source, GuardedTensor& tensor, Stream stream, const StoredRow& at,
                std::span<double> values) {
    const ElementType type = tensor.layout().type;
    if (source.c.qscale != QScale::no_scale) {
        std::int64_t column = 0;
        for (double& value : values) value /= descale_at(source, stream, at.b, at.h, at.i, column++);
    }
    std::vector<std::uint32_t> codes(values.size());
    std::ranges::transform(values, codes.begin(), [type](double value) { return encode(type, value); });
    if (stream == stream_q || !is_vectorized(source.c)) return tensor.set_codes(at.slot, at.h, at.row, codes);
    std::int64_t column = 0;
    for (const std::uint32_t code : codes) {
        const PageCell cell = page_cell(source.c, type, stream == stream_v, at.row, column++);
        tensor.set_code(at.slot, at.h, cell.row, cell.col, code);
    }
}

TensorLayout layout_q(const Case& c, const Geometry& g) {
    return StrideMaker(c).make(g.types.q, g.stored_batch, c.nhead_q, g.rows_q, c.hdim_q,
                               c.iperm == Layout::bshd);
}
TensorLayout layout_k(const Case& c, const Geometry& g) {
    return StrideMaker(c).make(g.types.k, g.stored_batch, c.nhead_k, g.rows_k, c.hdim_q,
                               c.iperm == Layout::bshd);
}
TensorLayout layout_v(const Case& c, const Geometry& g) {
    const StrideMaker strides(c);
    const bool seq_major = c.iperm == Layout::bshd;
    return c.v_layout == VLayout::row
               ? strides.make(g.types.v, g.stored_batch, c.nhead_k, g.rows_k, c.hdim_v, seq_major)
               : strides.make_transposed(g.types.v, g.stored_batch, c.nhead_k, g.rows_k, c.hdim_v, seq_major);
}
TensorLayout layout_o(const Case& c, const Geometry& g) {
    return StrideMaker(c).make(g.types.o, g.stored_batch, c.nhead_q, g.rows_q, c.hdim_v,
                               c.operm == Layout::bshd);
}
TensorLayout layout_lse(const Case& c, const Geometry& g) {
    return StrideMaker(c).make_statistic(g.stored_batch, c.nhead_q, g.rows_q);
}
TensorLayout layout_bias(const Case& c, const Geometry& g) {
    TensorLayout layout =
        StrideMaker(c).make(g.types.bias, c.bias_rank >= 2 ? g.stored_batch : 1,
                            c.bias_rank >= 1 ? c.nhead_q : 1, g.rows_q, g.row_keys, c.iperm == Layout::bshd);
    if (c.bias_rank < 2) layout.batch_stride = 0;
    if (c.bias_rank < 1) layout.head_stride = 0;
    return layout;
}
TensorLayout layout_randval(const Case& c, const Geometry& g) {
    return StrideMaker(c).make(ElementType::uint8, g.stored_batch, c.nhead_q, g.rows_q, g.row_keys, false);
}
TensorLayout layout_alibi_slopes(const Case& c, const Geometry&) {
    return c.bias_rank >= 1 ? array_layout(ElementType::fp32, c.batch, c.nhead_q)
                            : array_layout(ElementType::fp32, c.nhead_q);
}
TensorLayout layout_sink_logits(const Case& c, const Geometry&) {
    return array_layout(ElementType::fp32, c.nhead_q);
}

void fill_q(const DataSource& source, GuardedTensor& tensor) {
    fill_side(
        source, tensor, stream_q, source.c.nhead_q, source.c.hdim_q,
        [&](auto b, auto h, auto i, const EntryGeometry&, auto row) { source.fill.q_row(b, h, i, row); });
}
void fill_k(const DataSource& source, GuardedTensor& tensor) {
    fill_side(source, tensor, stream_k, source.c.nhead_k, source.c.hdim_q,
              [&](auto b, auto h, auto j, const EntryGeometry& entry, auto row) {
                  source.fill.k_row(b, h, j, entry.seqlen_k, row);
              });
}
void fill_v(const DataSource& source, GuardedTensor& tensor) {
    fill_side(
        source, tensor, stream_v, source.c.nhead_k, source.c.hdim_v,
        [&](auto b, auto h, auto j, const EntryGeometry&, auto row) { source.fill.v_row(b, h, j, row); });
}
void fill_bias(const DataSource& source, GuardedTensor& tensor) {
    each_bias_row(source, [&](auto b, auto h, auto stored, auto i, auto keys) {
        for (std::int64_t j = 0; j < keys; ++j)
            tensor.set_code(b, h, stored, j, encode(tensor.layout().type, source.fill.bias(b, h, i, j)));
    });
}
void fill_alibi_slopes(const DataSource& source, GuardedTensor& tensor) {
    const Case& c = source.c;
    const std::vector<float> slopes = default_alibi_slopes(c.nhead_q);
    const float sign = c.negative_slopes ? -1.0F : 1.0F;
    for (std::int64_t b = 0; b < tensor.layout().rows; ++b)
        for (std::int64_t h = 0; h < c.nhead_q; ++h) {
            const float slope = slopes[static_cast<std::size_t>(plain_head(c, h, c.nhead_q))];
            const std::int64_t entry = c.bias_rank >= 1 ? plain_entry(c, b) : 0;
            const float factor = 1.0F + static_cast<float>(entry) / 8.0F;
            tensor.set_code(0, 0, b, h, std::bit_cast<std::uint32_t>(slope * factor * sign));
        }
}
void fill_sink_logits(const DataSource& source, GuardedTensor& tensor) {
    for (std::int64_t h = 0; h < source.c.nhead_q; ++h)
        tensor.set_code(0, 0, 0, h, std::bit_cast<std::uint32_t>(source.fill.sink_logit(h)));
}

void rows_of_q(const DataSource& source, const RowVisit& visit) {
    rows_of_side(source, Side::queries, source.c.nhead_q, source.c.hdim_q, visit);
}
void rows_of_k(const DataSource& source, const RowVisit& visit) {
    rows_of_side(source, Side::keys, source.c.nhead_k, source.c.hdim_q, visit);
}
void rows_of_v(const DataSource& source, const RowVisit& visit) {
    rows_of_side(source, Side::keys, source.c.nhead_k, source.c.hdim_v, visit);
}
void rows_of_o(const DataSource& source, const RowVisit& visit) {
    rows_of_output(source, visit, [&](const EntryGeometry&) { return source.c.hdim_v; });
}
void rows_of_lse(const DataSource& source, const RowVisit& visit) {
    rows_of_output(source, visit, [](const EntryGeometry&) { return std::int64_t{1}; });
}
void rows_of_bias(const DataSource& source, const RowVisit& visit) {
    each_bias_row(source, [&](auto b, auto h, auto stored, auto, auto keys) { visit({b, h, stored, keys}); });
}
void rows_of_randval(const DataSource& source, const RowVisit& visit) {
    rows_of_output(source, visit, [](const EntryGeometry& entry) { return entry.seqlen_k; });
}
void rows_of_alibi_slopes(const DataSource& source, const RowVisit& visit) {
    for (std::int64_t b = 0; b < (source.c.bias_rank >= 1 ? source.c.batch : 1); ++b)
        visit({0, 0, b, source.c.nhead_q});
}
void rows_of_sink_logits(const DataSource& source, const RowVisit& visit) {
    visit({0, 0, 0, source.c.nhead_q});
}

void fill_entries(const DataSource& source, GuardedTensor& tensor, bool cumulative, EntryNumber value) {
    std::int64_t sum = 0, n = 0;
    const auto put = [&](std::int64_t number) {
        tensor.set_code(0, 0, 0, n++, static_cast<std::uint32_t>(static_cast<std::int32_t>(number)));
    };
    if (cumulative) put(0);
    for (const EntryGeometry& entry : source.geometry.entries) {
        sum += value(entry);
        put(cumulative ? sum : value(entry));
    }
}

MaskArgs mask_args(const Case& c) {
    return for_kernels({c.mask, c.window_left, c.window_right, c.sink_size});
}

Shape shape_args(const DataSource& source) {
    const Case& c = source.c;
    const EntryGeometry& first = source.geometry.entries.front();
    return {.mode = c.mode,
            .batch = c.batch,
            .nhead_q = c.nhead_q,
            .nhead_k = c.nhead_k,
            .seqlen_q = first.physical_q,
            .seqlen_k = first.physical_k,
            .max_seqlen_q = source.geometry.max_seqlen_q,
            .min_seqlen_q = c.min_seqlen_q,
            .hdim_q = c.hdim_q,
            .hdim_v = c.hdim_v};
}

ScoreArgs score_args(const Case& c) {
    return {.bias_type = c.bias,
            .alibi_stride = c.bias == BiasType::alibi && c.bias_rank >= 1 ? c.nhead_q : 0,
            .scale_s = resolved_scale(c),
            .scale_o = static_cast<float>(c.scale_o),
            .logits_soft_cap = static_cast<float>(c.logits_soft_cap)};
}

DropoutArgs dropout_args(const Case& c) {
    return {static_cast<float>(c.p_drop), c.dropout_seed, c.dropout_offset};
}

} // namespace roles
} // namespace fmha::harness
