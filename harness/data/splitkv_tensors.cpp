#include "harness/data/splitkv_tensors.hpp"

#include "harness/data/cache_roles.hpp"
#include "harness/data/partial_fill.hpp"

#include <array>
#include <bit>

namespace fmha::harness {
namespace {

using namespace roles;
using Tensor = GuardedTensor;
using Line = Role<SplitKvArgs>;

bool combines_only(const Case& c) {
    return c.split.stage == SplitStage::combine;
}
bool attends(const Case& c) {
    return !combines_only(c);
}

/// Heads of o_acc and lse_acc: head h · num_splits + split (S-3).
std::int64_t partial_heads(const Case& c) {
    return c.nhead_q * c.split.num_splits;
}

TensorLayout layout_o_acc(const Case& c, const Geometry& g) {
    return StrideMaker(c).make(ElementType::fp32, g.stored_batch, partial_heads(c), g.rows_q, c.hdim_v,
                               c.iperm == Layout::bshd);
}
TensorLayout layout_lse_acc(const Case& c, const Geometry& g) {
    return StrideMaker(c).make_statistic(g.stored_batch, partial_heads(c), g.rows_q);
}

/// Calls visit(b, h, split, stored row, i) for every partial result. Combining knows no lengths but those of the memory.
template <class Visit>
void each_partial(const DataSource& source, Visit&& visit) {
    const Case& c = source.c;
    for (std::int64_t b = 0; b < c.batch; ++b) {
        const EntryGeometry& entry = source.geometry.entries[static_cast<std::size_t>(b)];
        for (std::int64_t h = 0; h < c.nhead_q; ++h)
            for (std::int64_t split = 0; split < c.split.num_splits; ++split)
                for (std::int64_t i = first_row(c); i < entry.physical_q; ++i)
                    visit(b, h, split, entry.start_q + i, i);
    }
}

std::uint32_t fp32_code(double value) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

void fill_o_acc(const DataSource& source, Tensor& tensor) {
    const PartialFill fill(source.c);
    each_partial(source, [&](auto b, auto h, auto split, auto stored, auto i) {
        if (fill.empty(b, h, split, i)) return;
        for (std::int64_t channel = 0; channel < source.c.hdim_v; ++channel)
            tensor.set_code(b, h * source.c.split.num_splits + split, stored, channel,
                            fp32_code(fill.o(b, h, split, i, channel)));
    });
}
void fill_lse_acc(const DataSource& source, Tensor& tensor) {
    const PartialFill fill(source.c);
    each_partial(source, [&](auto b, auto h, auto split, auto stored, auto i) {
        tensor.set_code(b, h * source.c.split.num_splits + split, stored, 0,
                        fp32_code(fill.lse(b, h, split, i)));
    });
}

/// Those of splits without keys are not read, so they stay poison.
void rows_of_o_acc(const DataSource& source, const RowVisit& visit) {
    const PartialFill fill(source.c);
    each_partial(source, [&](auto b, auto h, auto split, auto stored, auto i) {
        if (!fill.empty(b, h, split, i))
            visit({b, h * source.c.split.num_splits + split, stored, source.c.hdim_v});
    });
}
void rows_of_lse_acc(const DataSource& source, const RowVisit& visit) {
    each_partial(source, [&](auto b, auto h, auto split, auto stored, auto) {
        visit({b, h * source.c.split.num_splits + split, stored, 1});
    });
}

/// Rows of O and LSE. Combining knows no logical lengths.
void each_combined_row(const DataSource& source, std::int64_t columns, const RowVisit& visit) {
    for (std::int64_t b = 0; b < source.c.batch; ++b) {
        const EntryGeometry& entry = source.geometry.entries[static_cast<std::size_t>(b)];
        for (std::int64_t h = 0; h < source.c.nhead_q; ++h)
            for (std::int64_t i = first_row(source.c); i < entry.physical_q; ++i)
                visit({b, h, entry.start_q + i, columns});
    }
}
void rows_of_combined_o(const DataSource& source, const RowVisit& visit) {
    each_combined_row(source, source.c.hdim_v, visit);
}
void rows_of_combined_lse(const DataSource& source, const RowVisit& visit) {
    each_combined_row(source, 1, visit);
}

/// Of the main stage, which writes them all.
void rows_of_all_o_acc(const DataSource& source, const RowVisit& visit) {
    each_partial(source, [&](auto b, auto h, auto split, auto stored, auto) {
        visit({b, h * source.c.split.num_splits + split, stored, source.c.hdim_v});
    });
}

void bind_o_acc(SplitKvArgs& args, const Tensor& tensor) {
    args.partials.o_acc = tensor.view();
}
void bind_lse_acc(SplitKvArgs& args, const Tensor& tensor) {
    args.partials.lse_acc = tensor.view();
}

constexpr std::array<Line, 6> own{{
    {"o_acc", Flow::in, combines_only, layout_o_acc, fill_o_acc, rows_of_o_acc, bind_o_acc},
    {"lse_acc", Flow::in, combines_only, layout_lse_acc, fill_lse_acc, rows_of_lse_acc, bind_lse_acc},
    {"o_acc", Flow::out, attends, layout_o_acc, nullptr, rows_of_all_o_acc, bind_o_acc, false},
    {"lse_acc", Flow::out, attends, layout_lse_acc, nullptr, rows_of_lse_acc, bind_lse_acc, false},
    {"o", Flow::out, always, layout_o, nullptr, rows_of_combined_o,
     [](SplitKvArgs& args, const Tensor& tensor) { args.o = tensor.view(); }},
    {"lse", Flow::out, [](const Case& c) { return c.lse; }, layout_lse, nullptr, rows_of_combined_lse,
     [](SplitKvArgs& args, const Tensor& tensor) { args.lse = tensor.view(); }},
}};

constexpr auto table =
    joined(own, attention_roles<SplitKvArgs, attends>, table_roles<SplitKvArgs>, chain_roles<SplitKvArgs>);

} // namespace

template <>
std::span<const Role<SplitKvArgs>> roles_of<SplitKvArgs>() {
    return table;
}

template <>
void bind_values<SplitKvArgs>(const DataSource& source, SplitKvArgs& args) {
    bind_attention(source, args);
    args.partials.num_splits = source.c.split.num_splits;
}

} // namespace fmha::harness
