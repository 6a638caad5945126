#include "dispatcher/types/check_outputs.hpp"

#include "dispatcher/types/check_cache.hpp"
#include "dispatcher/types/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <variant>

namespace fmha {
namespace {

/// How many elements a dimension has. Those of packed sequences are bounded from above, and a caller's bound may be any large number.
struct Extent {
    std::int64_t count = 0;
    bool is_bound = false;
};

/// One dimension of a tensor.
struct Axis {
    std::string_view name;
    Extent extent;
    std::int64_t stride = 0;

    bool is_certain() const { return extent.count > 1 && !extent.is_bound; }

    std::uint64_t step() const {
        const auto bits = static_cast<std::uint64_t>(stride);
        return stride < 0 ? -bits : bits;
    }
};

/// Whether steps along one axis lead where steps along another do. They first meet after lcm(a, b) elements.
bool meet(const Axis& a, const Axis& b) {
    const std::uint64_t common = std::gcd(a.step(), b.step());
    return b.step() / common < static_cast<std::uint64_t>(a.extent.count) &&
           a.step() / common < static_cast<std::uint64_t>(b.extent.count);
}

/// (batch, head, row, column).
using Extents = std::array<Extent, 4>;

void require_apart(std::string_view name, const TensorView& view, const Extents& extents) {
    if (!view.present() ||
        std::ranges::any_of(extents, [](const Extent& extent) { return extent.count <= 0; }))
        return;
    const std::array<Axis, 4> axes{{{"batch", extents[0], view.batch_stride},
                                    {"head", extents[1], view.head_stride},
                                    {"row", extents[2], view.row_stride},
                                    {"column", extents[3], view.col_stride}}};
    const auto refuse = [&](const Axis& axis, const std::string& why) {
        throw ProblemError(
            "L-4", fmt::format("{}.{}_stride", name, axis.name), fmt::format("{}", axis.stride),
            fmt::format("{} has {}; every element of an output needs a place of its own", name, why));
    };
    for (const Axis& axis : axes)
        if (axis.stride == 0 && axis.extent.count > 1)
            refuse(axis, fmt::format("{0} stride 0 and {0} extent {1}", axis.name, axis.extent.count));
    for (std::size_t i = 0; i < axes.size(); ++i)
        for (std::size_t j = i + 1; j < axes.size(); ++j) {
            const Axis &a = axes.at(i), &b = axes.at(j);
            if (a.is_certain() && b.is_certain() && meet(a, b))
                refuse(a,
                       fmt::format("{} stride {} and {} stride {}, with which two of {} x {} elements meet",
                                   a.name, a.stride, b.name, b.stride, a.extent.count, b.extent.count));
        }
}

/// Rows of queries and keys, as far as lengths are not looked at.
struct Rows {
    Extent batch, queries, keys;

    static Rows of(const Shape& shape, std::int64_t max_seqlen_k) {
        if (shape.mode == Mode::group) return {{1}, {shape.max_seqlen_q, true}, {max_seqlen_k, true}};
        return {{shape.batch}, {shape.seqlen_q}, {shape.seqlen_k}};
    }
};

void check(const AppendKvArgs& args, const Rows& rows) {
    const Shape& shape = args.shape;
    if (args.rope.type != Rope::none)
        require_apart("q", args.q, {rows.batch, {shape.nhead_q}, rows.queries, {shape.hdim_q}});
    if (args.seqlen_knew <= 0) return;
    const Extent slots{known_slots(shape, args.place)};
    const std::int64_t keys = args.place.page_size > 0 ? args.place.page_size : shape.seqlen_k;
    require_apart("k", args.k, {slots, {shape.nhead_k}, {keys}, {shape.hdim_q}});
    require_apart("v", args.v, {slots, {shape.nhead_k}, {keys}, {shape.hdim_v}});
}

void check(const BwdArgs& args, const Rows& rows) {
    const Shape& shape = args.shape;
    const std::int64_t heads = shape.nhead_q, heads_k = args.reduce_dk_dv ? shape.nhead_k : heads;
    require_apart("d", args.d, {rows.batch, {heads}, rows.queries, {1}});
    require_apart("dq", args.dq, {rows.batch, {heads}, rows.queries, {shape.hdim_q}});
    require_apart("dk", args.dk, {rows.batch, {heads_k}, rows.keys, {shape.hdim_q}});
    require_apart("dv", args.dv, {rows.batch, {heads_k}, rows.keys, {shape.hdim_v}});
    require_apart("dbias", args.dbias, {rows.batch, {heads}, rows.queries, rows.keys});
    if (args.d_sink != nullptr && args.score.sink_logit == nullptr)
        throw InputError("d_sink is given, but score.sink_logit is NULL; only sink logits have gradients");
}

template <class Args>
void check(const Args& args, const Rows& rows) {
    const std::int64_t heads = args.shape.nhead_q;
    require_apart("o", args.o, {rows.batch, {heads}, rows.queries, {args.shape.hdim_v}});
    if constexpr (requires { args.lse; })
        require_apart("lse", args.lse, {rows.batch, {heads}, rows.queries, {1}});
    if constexpr (requires { args.randval; })
        require_apart("randval", args.randval, {rows.batch, {heads}, rows.queries, rows.keys});
}

} // namespace

void check_outputs(const Invocation& arguments, std::int64_t max_seqlen_k) {
    std::visit(
        [max_seqlen_k](const auto& args) {
            if constexpr (requires { args.shape; }) check(args, Rows::of(args.shape, max_seqlen_k));
        },
        arguments);
}

} // namespace fmha
