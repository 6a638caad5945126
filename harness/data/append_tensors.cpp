#include "harness/data/append_tensors.hpp"

#include "harness/cases/value_order.hpp"
#include "harness/data/cache_roles.hpp"
#include "reference/numerics/formats.hpp"

#include <array>
#include <cmath>
#include <vector>

namespace fmha::harness {
namespace {

using namespace roles;
using Tensor = GuardedTensor;
using Line = Role<AppendKvArgs>;

enum Stream : std::uint64_t { stream_bits = 9, stream_angles = 10 };

bool seq_major(const Case& c) {
    return c.iperm == Layout::bshd;
}

/// Positions that the tables of RoPE cover (V-7).
std::int64_t positions_of(const Case& c) {
    return std::ranges::max(c.seqlen_k) + std::max(c.append.seqlen_knew, std::ranges::max(c.seqlen_q));
}
/// Any bits but those of a NaN (L-5).
std::uint32_t bits_of(ElementType type, const Random& row, std::int64_t channel) {
    const auto code = static_cast<std::uint32_t>(row.bits(static_cast<std::uint64_t>(channel)) >>
                                                 static_cast<unsigned>(64 - element_bits(type)));
    return std::isnan(reference::decode(type, code)) ? 0 : code;
}

/// The numbers of `row`; from channel `copied` on, any bits where the case asks for them.
void store_row(const DataSource& source, Tensor& tensor, std::int64_t b, std::int64_t h, std::int64_t i,
               std::int64_t copied, std::uint64_t which, std::span<const double> row) {
    const ElementType type = tensor.layout().type;
    const Case& c = source.c;
    const std::int64_t entry = plain_entry(c, b), head = plain_head(c, h, which == 0 ? c.nhead_q : c.nhead_k);
    const Random bits = Random(c.seed, stream_bits)
                            .row(static_cast<std::uint64_t>(entry),
                                 static_cast<std::uint64_t>(head) * 3 + which, static_cast<std::uint64_t>(i));
    for (std::size_t n = 0; n < row.size(); ++n) {
        const auto channel = static_cast<std::int64_t>(n);
        const bool any = c.append.any_bits && channel >= copied;
        tensor.set_code(b, h, i, channel,
                        any ? bits_of(type, bits, channel) : reference::encode(type, row[n]));
    }
}

void fill_q_rows(const DataSource& source, Tensor& tensor) {
    std::vector<double> row(static_cast<std::size_t>(source.c.hdim_q));
    rows_of_q(source, [&](const RowRun& run) {
        source.fill.q_row(run.b, run.h, run.row, row);
        store_row(source, tensor, run.b, run.h, run.row, rotary_dim_of(source.c), 0, row);
    });
}

} // namespace

namespace roles {

TensorLayout layout_angles(const Case& c, const Geometry& g) {
    return array_layout(g.types.k, positions_of(c), rotary_dim_of(c) / 2);
}

/// Angles without any order: that of a position tells nothing of its neighbours'.
template <bool sine>
void fill_angles(const DataSource& source, GuardedTensor& tensor) {
    const Random random(source.c.seed, stream_angles);
    const std::int64_t pairs = rotary_dim_of(source.c) / 2;
    for (std::int64_t p = 0; p < positions_of(source.c); ++p) {
        const Random row = random.row(static_cast<std::uint64_t>(p), 0);
        for (std::int64_t m = 0; m < pairs; ++m) {
            const auto at = static_cast<std::uint64_t>(m);
            const double cosine = 2.0 * row.uniform(at) - 1.0;
            const double height = std::sqrt(1.0 - cosine * cosine);
            const bool below = row.integer(at + static_cast<std::uint64_t>(pairs), 0, 1) == 0;
            tensor.set_code(0, 0, p, m,
                            reference::encode(tensor.layout().type, !sine   ? cosine
                                                                    : below ? -height
                                                                            : height));
        }
    }
}

void rows_of_angles(const DataSource& source, const RowVisit& visit) {
    for (std::int64_t p = 0; p < positions_of(source.c); ++p) visit({0, 0, p, rotary_dim_of(source.c) / 2});
}
void rotated_rows_of_q(const DataSource& source, const RowVisit& visit) {
    if (!rotates(source.c)) return;
    rows_of_q(source, [&](const RowRun& run) { visit({run.b, run.h, run.row, rotary_dim_of(source.c)}); });
}
template void fill_angles<false>(const DataSource&, GuardedTensor&);
template void fill_angles<true>(const DataSource&, GuardedTensor&);

template <bool values>
TensorLayout layout_new(const Case& c, const Geometry& g) {
    const StrideMaker strides = StrideMaker::of_cache(c);
    const std::int64_t rows = new_keys(c);
    if (!values) return strides.make(g.types.k, c.batch, c.nhead_k, rows, c.hdim_q, seq_major(c));
    return c.v_layout == VLayout::row
               ? strides.make(g.types.v, c.batch, c.nhead_k, rows, c.hdim_v, seq_major(c))
               : strides.make_transposed(g.types.v, c.batch, c.nhead_k, rows, c.hdim_v, seq_major(c));
}

/// New keys are the keys of their positions, so that an appended cache equals a filled cache of that length.
template <bool values>
void fill_new(const DataSource& source, GuardedTensor& tensor) {
    const Case& c = source.c;
    std::vector<double> row(static_cast<std::size_t>(values ? c.hdim_v : c.hdim_q));
    each_new_key(source, [&](auto b, auto i, auto position) {
        for (std::int64_t h = 0; h < c.nhead_k; ++h) {
            if (values)
                source.fill.v_row(b, h, position, row);
            else
                source.fill.k_row(b, h, position, position + new_keys(c) - i, row);
            if (appends(c))
                encode_row(source, tensor, values ? stream_v : stream_k, {b, h, position, b, i}, row);
            else
                store_row(source, tensor, b, h, i, values ? 0 : rotary_dim_of(c), values ? 2 : 1, row);
        }
    });
}

template <bool values>
void rows_of_new(const DataSource& source, const RowVisit& visit) {
    each_new_key(source, [&](auto b, auto i, auto) {
        for (std::int64_t h = 0; h < source.c.nhead_k; ++h)
            visit({b, h, i, values ? source.c.hdim_v : source.c.hdim_q});
    });
}
template <bool values>
void rows_of_appended(const DataSource& source, const RowVisit& visit) {
    const CachePlaces places(source.c);
    each_new_key(source, [&](auto b, auto, auto position) {
        const auto at = places.of_key(b, position);
        for (std::int64_t h = 0; h < source.c.nhead_k; ++h)
            visit({at.slot, h, at.row, values ? source.c.hdim_v : source.c.hdim_q});
    });
}

template TensorLayout layout_new<false>(const Case&, const Geometry&);
template TensorLayout layout_new<true>(const Case&, const Geometry&);
template void fill_new<false>(const DataSource&, GuardedTensor&);
template void fill_new<true>(const DataSource&, GuardedTensor&);
template void rows_of_new<false>(const DataSource&, const RowVisit&);
template void rows_of_new<true>(const DataSource&, const RowVisit&);
template void rows_of_appended<false>(const DataSource&, const RowVisit&);
template void rows_of_appended<true>(const DataSource&, const RowVisit&);

} // namespace roles

namespace {

constexpr std::array<Line, 8> own{{
    {"q", Flow::in_out, [](const Case& c) { return std::ranges::max(c.seqlen_q) > 0; }, layout_q, fill_q_rows,
     rotated_rows_of_q, [](AppendKvArgs& args, const Tensor& tensor) { args.q = tensor.view(); }},
    {"k", Flow::in_out, always, layout_cached_k, nullptr, rows_of_appended<false>,
     [](AppendKvArgs& args, const Tensor& tensor) { args.k = tensor.view(); }},
    {"v", Flow::in_out, always, layout_cached_v, nullptr, rows_of_appended<true>,
     [](AppendKvArgs& args, const Tensor& tensor) { args.v = tensor.view(); }},
    {"k_new", Flow::in, always, layout_new<false>, fill_new<false>, rows_of_new<false>,
     [](AppendKvArgs& args, const Tensor& tensor) { args.k_new = tensor.view(); }},
    {"v_new", Flow::in, always, layout_new<true>, fill_new<true>, rows_of_new<true>,
     [](AppendKvArgs& args, const Tensor& tensor) { args.v_new = tensor.view(); }},
    {"cos", Flow::in, rotates, layout_angles, fill_angles<false>, rows_of_angles,
     [](AppendKvArgs& args, const Tensor& tensor) { args.rope.cos = tensor.view(); }},
    {"sin", Flow::in, rotates, layout_angles, fill_angles<true>, rows_of_angles,
     [](AppendKvArgs& args, const Tensor& tensor) { args.rope.sin = tensor.view(); }},
    {"seqlen_k", Flow::in, always, layout_entries, fill_seqlen_k, rows_of_entries,
     [](AppendKvArgs& args, const Tensor& tensor) { args.lengths.seqlen_k = array_of(tensor); }, false},
}};

constexpr auto table = joined(own, table_roles<AppendKvArgs>);

} // namespace

template <>
std::span<const Role<AppendKvArgs>> roles_of<AppendKvArgs>() {
    return table;
}

template <>
void bind_values<AppendKvArgs>(const DataSource& source, AppendKvArgs& args) {
    const Case& c = source.c;
    args.shape = shape_args(source);
    args.shape.seqlen_k = room_of(c);
    args.seqlen_knew = c.append.seqlen_knew;
    args.has_mask = c.mask != MaskType::no_mask;
    args.rope.type = c.append.rope;
    args.rope.rotary_dim = rotary_dim_of(c);
    bind_place(c, args.place);
}

} // namespace fmha::harness
