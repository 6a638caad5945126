#include "dispatcher/types/check_memory.hpp"

#include "dispatcher/types/check_cache.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/overlap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

namespace fmha {
namespace {

struct PlacedTensor {
    std::string_view name;
    TensorView view;
    TensorExtents extents;
};

/// Strides that no memory has, and elements across the units that machines read.
void require_places(const PlacedTensor& tensor) {
    const auto& [name, view, extents] = tensor;
    if (std::ranges::any_of(extents, [](std::int64_t extent) { return extent <= 0; })) return;
    if (!addressable(view, extents))
        throw ProblemError("L-1", std::string(name), "strides",
                           fmt::format("{} has strides {}, {}, {} and {}, which lead beyond 2^56 bytes", name,
                                       view.batch_stride, view.head_stride, view.row_stride,
                                       view.col_stride));
    const auto bytes = static_cast<std::uintptr_t>(element_bytes(view.type));
    if (reinterpret_cast<std::uintptr_t>(view.data) % bytes != 0)
        throw InputError(fmt::format("{}.data is {}; elements of {} bytes lie at multiples of {}", name,
                                     view.data, bytes, bytes));
}

void require_separate(const PlacedTensor& output, const PlacedTensor& other) {
    if (overlap(output.view, output.extents, other.view, other.extents))
        throw ProblemError("L-4", std::string(output.name), fmt::format("memory of {}", other.name),
                           fmt::format("{} shares memory with {}; an output needs memory of its own",
                                       output.name, other.name));
}

void require_memory(std::initializer_list<PlacedTensor> outputs, std::initializer_list<PlacedTensor> inputs) {
    for (const auto tensors : {outputs, inputs}) std::ranges::for_each(tensors, require_places);
    for (const auto* output = outputs.begin(); output != outputs.end(); ++output) {
        for (const auto* other = output + 1; other != outputs.end(); ++other)
            require_separate(*output, *other);
        for (const PlacedTensor& input : inputs) require_separate(*output, input);
    }
}

/// Rows of queries and keys that certainly exist, and columns of bias and random bytes.
struct CertainRows {
    std::int64_t batch, queries, keys, columns;

    static CertainRows of(const Shape& shape, const LengthArrays& lengths, bool lengths_readable) {
        if (shape.mode == Mode::batch) return {shape.batch, shape.seqlen_q, shape.seqlen_k, shape.seqlen_k};
        const auto packed = [&](const std::int32_t* starts, std::int64_t otherwise) -> std::int64_t {
            if (starts == nullptr) return otherwise;
            return lengths_readable ? starts[shape.batch] : 1;
        };
        return {1, packed(lengths.seqstart_q, 1), packed(lengths.seqstart_k, shape.seqlen_k), 1};
    }
};

/// Of one of the two tensors of a cache, whose keys have `width` channels each.
template <class Args>
TensorExtents in_cache(const Args& args, const CertainRows& rows, std::int64_t width) {
    const KvPlace& place = args.place;
    const std::int64_t slots = known_slots(args.shape, place), heads = args.shape.nhead_k;
    if (place.page_size == 0) return {slots, heads, rows.keys, width};
    // What a head has of such a page is one piece (B-3).
    if (place.layout == KvLayout::vectorized) return {slots, heads, 1, place.page_size * width};
    return {slots, heads, place.page_size, width};
}

PlacedTensor one_a_head(std::string_view name, const float* numbers, std::int64_t heads) {
    return {name, {const_cast<float*>(numbers), ElementType::fp32}, {1, 1, 1, heads}};
}

void check_places(const AppendKvArgs& args, const CertainRows& rows) {
    const Shape& shape = args.shape;
    const std::int64_t added = args.seqlen_knew;
    const bool rotates = args.rope.type != Rope::none;
    const TensorView none;
    // What is not written cannot be in the way.
    require_memory({{"q", rotates ? args.q : none, {rows.batch, shape.nhead_q, rows.queries, shape.hdim_q}},
                    {"k", added > 0 ? args.k : none, in_cache(args, rows, shape.hdim_q)},
                    {"v", added > 0 ? args.v : none, in_cache(args, rows, shape.hdim_v)}},
                   {{"k_new", args.k_new, {rows.batch, shape.nhead_k, added, shape.hdim_q}},
                    {"v_new", args.v_new, {rows.batch, shape.nhead_k, added, shape.hdim_v}}});
}

void check_places(const BwdArgs& args, const CertainRows& rows) {
    const auto& [batch, queries, keys, columns] = rows;
    const Shape& shape = args.shape;
    const std::int64_t heads = shape.nhead_q, heads_k = shape.nhead_k,
                       written = args.reduce_dk_dv ? heads_k : heads;
    const std::int64_t deep = shape.hdim_q, wide = shape.hdim_v;
    require_memory({{"d", args.d, {batch, heads, queries, 1}},
                    {"dq", args.dq, {batch, heads, queries, deep}},
                    {"dk", args.dk, {batch, written, keys, deep}},
                    {"dv", args.dv, {batch, written, keys, wide}},
                    {"dbias", args.dbias, {batch, heads, queries, columns}},
                    one_a_head("d_sink", args.d_sink, heads)},
                   {{"q", args.q, {batch, heads, queries, deep}},
                    {"k", args.k, {batch, heads_k, keys, deep}},
                    {"v", args.v, {batch, heads_k, keys, wide}},
                    {"o", args.o, {batch, heads, queries, wide}},
                    {"lse", args.lse, {batch, heads, queries, 1}},
                    {"bias", args.bias, {batch, heads, queries, columns}},
                    {"d_o", args.d_o, {batch, heads, queries, wide}},
                    {"randval", args.randval, {batch, heads, queries, columns}},
                    one_a_head("sink_logit", args.score.sink_logit, heads)});
}

template <class Args>
void check_places(const Args& args, const CertainRows& rows) {
    const auto& [batch, queries, keys, columns] = rows;
    const Shape& shape = args.shape;
    const std::int64_t heads = shape.nhead_q, deep = shape.hdim_q, wide = shape.hdim_v;
    // A family may lack any of these.
    TensorView k, v, lse, bias, randval;
    const float* sink_logit = nullptr;
    TensorExtents of_k{batch, shape.nhead_k, keys, deep}, of_v{batch, shape.nhead_k, keys, wide};
    if constexpr (requires { args.k; }) k = args.k, v = args.v;
    if constexpr (requires { args.lse; }) lse = args.lse;
    if constexpr (requires { args.bias; }) bias = args.bias;
    if constexpr (requires { args.randval; }) randval = args.randval;
    if constexpr (requires { args.score; }) sink_logit = args.score.sink_logit;
    if constexpr (requires { args.place; }) {
        of_k = in_cache(args, rows, deep);
        of_v = in_cache(args, rows, wide);
    }
    require_memory({{"o", args.o, {batch, heads, queries, wide}},
                    {"lse", lse, {batch, heads, queries, 1}},
                    {"randval", randval, {batch, heads, queries, columns}}},
                   {{"q", args.q, {batch, heads, queries, deep}},
                    {"k", k, of_k},
                    {"v", v, of_v},
                    {"bias", bias, {batch, heads, queries, columns}},
                    one_a_head("sink_logit", sink_logit, heads)});
}

} // namespace

void check_memory(const Invocation& arguments, bool lengths_readable) {
    std::visit(
        [lengths_readable](const auto& args) {
            if constexpr (requires { args.shape; })
                check_places(args, CertainRows::of(args.shape, args.lengths, lengths_readable));
        },
        arguments);
}

} // namespace fmha
