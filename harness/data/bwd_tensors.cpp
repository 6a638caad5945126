#include "harness/data/bwd_tensors.hpp"

#include "harness/cases/value_order.hpp"
#include "harness/data/attention_roles.hpp"
#include "reference/numerics/formats.hpp"
#include "reference/rows.hpp"

#include <array>
#include <cmath>

namespace fmha::harness {
namespace {

using namespace roles;
using Tensor = GuardedTensor;
using Line = Role<BwdArgs>;

constexpr std::uint64_t stream_d_o = 11;

bool is_given(const Case& c) {
    return !runs_forward(c);
}

template <TensorView BwdArgs::*member>
void bind(BwdArgs& args, const Tensor& tensor) {
    args.*member = tensor.view();
}

/// A tensor of every query head, in the order `order` of the case.
template <Layout Case::*order>
TensorLayout layout_of_heads(const Case& c, const Geometry& g, ElementType type, std::int64_t rows,
                             std::int64_t columns) {
    return StrideMaker(c).make(type, g.stored_batch, c.nhead_q, rows, columns, c.*order == Layout::bshd);
}
/// Heads of dK and dV: those of Q, or with a reduction those of K (W-11).
std::int64_t heads_of_key_gradient(const Case& c) {
    return c.backward.reduce_dk_dv ? c.nhead_k : c.nhead_q;
}
TensorLayout layout_of_key_gradient(const Case& c, const Geometry& g, ElementType type,
                                    std::int64_t columns) {
    return StrideMaker(c).make(type, g.stored_batch, heads_of_key_gradient(c), g.rows_k, columns,
                               c.operm == Layout::bshd);
}
TensorLayout layout_d_o(const Case& c, const Geometry& g) {
    return layout_of_heads<&Case::iperm>(c, g, g.types.o, g.rows_q, c.hdim_v);
}
TensorLayout layout_dq(const Case& c, const Geometry& g) {
    return layout_of_heads<&Case::operm>(c, g, g.types.q, g.rows_q, c.hdim_q);
}
TensorLayout layout_dk(const Case& c, const Geometry& g) {
    return layout_of_key_gradient(c, g, g.types.k, c.hdim_q);
}
TensorLayout layout_dv(const Case& c, const Geometry& g) {
    return layout_of_key_gradient(c, g, g.types.v, c.hdim_v);
}
/// Never reduced, for a bias of any rank (W-12).
TensorLayout layout_dbias(const Case& c, const Geometry& g) {
    return layout_of_heads<&Case::operm>(c, g, g.types.bias, g.rows_q, g.row_keys);
}

/// One number of dO, as B.10 has them.
double d_o_value(Fill fill, const Random& random, std::int64_t i, std::size_t c) {
    switch (fill) {
    case Fill::indexed:
    case Fill::zeros:
        // At most 1: dS, whose products with V up to 64 may all have one sign, stays within fp16 (W-15).
        return std::ldexp((random.bits(0) & 1U) != 0 ? 1.0 : -1.0,
                          static_cast<int>((i + static_cast<std::int64_t>(c)) % 7) - 6);
    case Fill::uniform:
        return clear_of_subnormals(random.uniform(c));
    case Fill::integers:
        return static_cast<double>(random.integer(c, -3, 3));
    default:
        return clear_of_subnormals(random.normal(c));
    }
}

void fill_d_o(const DataSource& source, Tensor& tensor) {
    const Case& c = source.c;
    const Random random(c.seed, stream_d_o);
    for (std::int64_t b = 0; b < c.batch; ++b) {
        const EntryGeometry& entry = source.geometry.entries[static_cast<std::size_t>(b)];
        for (std::int64_t h = 0; h < c.nhead_q; ++h)
            for (std::int64_t i = 0; i < entry.seqlen_q; ++i) {
                const Random row = random.row(static_cast<std::uint64_t>(plain_entry(c, b)),
                                              static_cast<std::uint64_t>(plain_head(c, h, c.nhead_q)),
                                              static_cast<std::uint64_t>(i));
                for (std::int64_t n = 0; n < c.hdim_v; ++n)
                    tensor.set_code(
                        b, h, entry.start_q + i, n,
                        reference::encode(tensor.layout().type,
                                          d_o_value(c.fill, row, i, static_cast<std::size_t>(n))));
            }
    }
}

void fill_randval(const DataSource& source, Tensor& tensor) {
    FwdArgs args;
    args.shape.nhead_q = source.c.nhead_q;
    args.dropout = dropout_of_bytes(source.c);
    for (std::int64_t b = 0; b < source.c.batch; ++b) {
        const EntryGeometry& entry = source.geometry.entries[static_cast<std::size_t>(b)];
        for (std::int64_t h = 0; h < source.c.nhead_q; ++h)
            for (std::int64_t i = 0; i < entry.seqlen_q; ++i)
                for (std::int64_t j = 0; j < entry.seqlen_k; ++j)
                    tensor.set_code(b, h, entry.start_q + i, j,
                                    reference::stored_random_byte(args, {b, h, i}, j));
    }
}

/// Rows of a gradient of keys: one a key of every head of it.
template <std::int64_t Case::*columns>
void rows_of_key_gradient(const DataSource& source, const RowVisit& visit) {
    for (std::int64_t b = 0; b < source.c.batch; ++b) {
        const EntryGeometry& entry = source.geometry.entries[static_cast<std::size_t>(b)];
        for (std::int64_t h = 0; h < heads_of_key_gradient(source.c); ++h)
            for (std::int64_t j = 0; j < entry.seqlen_k; ++j)
                visit({b, h, entry.start_k + j, source.c.*columns});
    }
}
constexpr std::array<Line, 4> inputs{{
    {"q", Flow::in, always, layout_q, fill_q, rows_of_q, bind<&BwdArgs::q>},
    {"k", Flow::in, always, layout_k, fill_k, rows_of_k, bind<&BwdArgs::k>},
    {"v", Flow::in, always, layout_v, fill_v, rows_of_v, bind<&BwdArgs::v>},
    {"bias", Flow::in, [](const Case& c) { return c.bias == BiasType::elementwise; }, layout_bias, fill_bias,
     rows_of_bias, bind<&BwdArgs::bias>},
}};

/// O and LSE come behind everything that forward reads, because they are computed from it.
constexpr std::array<Line, 14> own{{
    {"randval", Flow::in, [](const Case& c) { return c.store_randval && !runs_forward(c); }, layout_randval,
     fill_randval, rows_of_randval, bind<&BwdArgs::randval>},
    {"randval", Flow::out, [](const Case& c) { return c.store_randval && runs_forward(c); }, layout_randval,
     nullptr, rows_of_randval, bind<&BwdArgs::randval>},
    {"o", Flow::in, is_given, layout_o, nullptr, rows_of_o, bind<&BwdArgs::o>},
    {"o", Flow::out, runs_forward, layout_o, nullptr, rows_of_o, bind<&BwdArgs::o>},
    {"lse", Flow::in, is_given, layout_lse, nullptr, rows_of_lse, bind<&BwdArgs::lse>},
    {"lse", Flow::out, runs_forward, layout_lse, nullptr, rows_of_lse, bind<&BwdArgs::lse>},
    {"d_o", Flow::in, always, layout_d_o, fill_d_o, rows_of_o, bind<&BwdArgs::d_o>},
    {"d", Flow::out, always, layout_lse, nullptr, rows_of_lse, bind<&BwdArgs::d>, false},
    {"dq", Flow::out, always, layout_dq, nullptr, rows_of_q, bind<&BwdArgs::dq>},
    {"dk", Flow::out, always, layout_dk, nullptr, rows_of_key_gradient<&Case::hdim_q>, bind<&BwdArgs::dk>},
    {"dv", Flow::out, always, layout_dv, nullptr, rows_of_key_gradient<&Case::hdim_v>, bind<&BwdArgs::dv>},
    {"dbias", Flow::out, [](const Case& c) { return c.backward.dbias; }, layout_dbias, nullptr,
     rows_of_randval, bind<&BwdArgs::dbias>},
    {"d_sink", Flow::out, [](const Case& c) { return c.sink_logits != SinkLogits::none; }, layout_sink_logits,
     nullptr, rows_of_sink_logits,
     [](BwdArgs& args, const Tensor& tensor) { args.d_sink = static_cast<float*>(tensor.view().data); }},
    {"workspace", Flow::scratch, always,
     [](const Case&, const Geometry&) { return array_layout(ElementType::fp32, 0); }, nullptr, nullptr,
     [](BwdArgs& args, const Tensor& tensor) { args.workspace = tensor.view().data; }, false},
}};

constexpr auto table = joined(inputs, length_roles<BwdArgs>, slope_and_sink_roles<BwdArgs>, own);

} // namespace

bool runs_forward(const Case& c) {
    return c.backward.forward == ForwardResults::kernel;
}

DropoutArgs dropout_of_bytes(const Case& c) {
    DropoutArgs dropout = dropout_args(c);
    if (c.store_randval && !runs_forward(c)) ++dropout.seed;
    return dropout;
}

template <>
std::span<const Role<BwdArgs>> roles_of<BwdArgs>() {
    return table;
}

template <>
void bind_values<BwdArgs>(const DataSource& source, BwdArgs& args) {
    const Case& c = source.c;
    args.shape = shape_args(source);
    // In a group this is no length, it says how many blocks share the key tiles of a head.
    if (is_group(c)) args.shape.seqlen_k = source.geometry.max_seqlen_k;
    args.mask = mask_args(c);
    args.score = score_args(c);
    args.dropout = dropout_args(c);
    args.deterministic = c.backward.deterministic;
    args.reduce_dk_dv = c.backward.reduce_dk_dv;
}

} // namespace fmha::harness
