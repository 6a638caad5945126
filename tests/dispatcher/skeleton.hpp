#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/element.hpp"
#include "dispatcher/types/problem.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace fmha::testing {

/// Stands for "some memory": present, never read.
template <class T>
T* placeholder() {
    static T object{};
    return &object;
}

/// Such memory at an address that is a multiple of `bytes`, a power of two, and of nothing larger.
inline void* placeholder_at(std::int64_t bytes) {
    alignas(2 * most_tensor_alignment) static std::array<std::byte, 2 * most_tensor_alignment> memory{};
    return &memory.at(static_cast<std::size_t>(bytes));
}

inline Shape shape_of(const Problem& problem) {
    Shape shape;
    shape.mode = problem.signature.mode;
    shape.batch = problem.batch;
    shape.nhead_q = problem.nhead_q;
    shape.nhead_k = problem.nhead_k;
    shape.seqlen_q = problem.seqlen_q;
    shape.seqlen_k = problem.seqlen_k;
    shape.max_seqlen_q = problem.max_seqlen_q;
    shape.min_seqlen_q = problem.min_seqlen_q;
    shape.hdim_q = problem.signature.hdim_q;
    shape.hdim_v = problem.signature.hdim_v;
    return shape;
}

/// Arrays that are there and never read.
inline LengthArrays lengths_of(const Presence& has) {
    LengthArrays lengths;
    const std::int32_t* array = placeholder<std::int32_t>();
    if (has.seqstart_q) lengths.seqstart_q = array;
    if (has.seqstart_k) lengths.seqstart_k = array;
    if (has.seqlen_q) lengths.seqlen_q = array;
    if (has.seqlen_k) lengths.seqlen_k = array;
    if (has.cu_seqlen_q) lengths.cu_seqlen_q = array;
    if (has.cu_seqlen_k) lengths.cu_seqlen_k = array;
    return lengths;
}

/// Arguments of forward that pose this problem, with an address of something wherever a pointer must be present. `problem_of` gives the
/// problem back.
inline FwdArgs skeleton_of(const Problem& problem) {
    const Signature& s = problem.signature;
    const ElementTypes types = element_types(s.data_type, fp8_flavour(problem.arch));
    FwdArgs args;
    args.shape = shape_of(problem);
    args.lengths = lengths_of(problem.presence);
    args.q.type = types.q;
    args.k.type = types.k;
    args.v.type = types.v;
    args.o.type = types.o;
    args.bias.type = types.bias;
    args.randval.type = ElementType::uint8;
    for (TensorView* view : {&args.q, &args.k, &args.v, &args.o})
        view->data = placeholder_at(problem.tensor_alignment);
    // Rows of whole units of 16 bytes for every type, and heads and entries that share their memory: or a row that does.
    for (TensorView* view : {&args.q, &args.k, &args.v})
        view->row_stride = problem.tensors_mappable ? 2 * most_tensor_alignment : 0;
    if (s.v_layout == VLayout::column) {
        // Lines of V are channels, and its entries and heads have memory of their own.
        std::swap(args.v.row_stride, args.v.col_stride);
        args.v.batch_stride = args.v.head_stride = args.v.col_stride;
    }
    if (s.has_lse) args.lse.data = placeholder<std::uint64_t>();
    if (s.is_store_randval) args.randval.data = placeholder<std::uint64_t>();
    if (s.bias == BiasType::elementwise) args.bias.data = placeholder<std::uint64_t>();
    if (s.bias == BiasType::alibi) args.score.alibi_slopes = placeholder<float>();
    if (s.has_sink_logit) args.score.sink_logit = placeholder<float>();
    args.mask = {problem.mask_type, problem.window_left, problem.window_right, problem.sink_size};
    args.score.bias_type = s.bias;
    args.quant.qscale = s.qscale;
    // The rule of H-3 from the unpadded dimension; values that only have to be "on" get the mildest one.
    args.score.scale_s = 1.0F / std::sqrt(static_cast<float>(s.hdim_q));
    if (s.has_logits_soft_cap) args.score.logits_soft_cap = 1.0F;
    if (s.has_dropout) args.dropout.p_drop = 0.5F;
    return args;
}

} // namespace fmha::testing
