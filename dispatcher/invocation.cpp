#include "dispatcher/invocation.hpp"

#include "dispatcher/types/element.hpp"

#include <cmath>

namespace fmha {

namespace {

/// Stands for "some memory": present, never read.
template <class T>
T* placeholder() {
    static T object{};
    return &object;
}

} // namespace

Problem problem_of(const Signature& traits, const FwdArgs& args, const ArchName& arch) {
    Problem problem;
    problem.api_family = ApiFamily::fwd;
    problem.arch = arch;
    problem.signature = traits;
    Signature& s = problem.signature;
    s.family = KernelFamily::fwd;
    s.mode = args.shape.mode;
    s.hdim_q = args.shape.hdim_q;
    s.hdim_v = args.shape.hdim_v;
    s.bias = args.score.bias_type;
    s.qscale = args.quant.qscale;
    s.has_lse = args.lse.present();
    s.is_store_randval = args.randval.present();
    s.has_dropout = args.dropout.p_drop > 0.0F;
    s.has_logits_soft_cap = args.score.logits_soft_cap != 0.0F;
    s.has_sink_logit = args.score.sink_logit != nullptr;
    problem.mask_type = args.mask.type;
    problem.window_left = args.mask.left;
    problem.window_right = args.mask.right;
    problem.sink_size = args.mask.sink;
    problem.batch = args.shape.batch;
    problem.nhead_q = args.shape.nhead_q;
    problem.nhead_k = args.shape.nhead_k;
    problem.seqlen_q = args.shape.seqlen_q;
    problem.seqlen_k = args.shape.seqlen_k;
    problem.max_seqlen_q = args.shape.max_seqlen_q;
    problem.min_seqlen_q = args.shape.min_seqlen_q;
    const LengthArrays& lengths = args.lengths;
    Presence& has = problem.presence;
    has.seqstart_q = lengths.seqstart_q != nullptr;
    has.seqstart_k = lengths.seqstart_k != nullptr;
    has.seqlen_q = lengths.seqlen_q != nullptr;
    has.seqlen_k = lengths.seqlen_k != nullptr;
    has.cu_seqlen_q = lengths.cu_seqlen_q != nullptr;
    has.cu_seqlen_k = lengths.cu_seqlen_k != nullptr;
    return normalised(problem);
}

FwdArgs skeleton_of(const Problem& problem) {
    const Signature& s = problem.signature;
    const ElementTypes types = element_types(s.data_type, fp8_flavour(problem.arch));
    FwdArgs args;
    args.shape.mode = s.mode;
    args.shape.batch = problem.batch;
    args.shape.nhead_q = problem.nhead_q;
    args.shape.nhead_k = problem.nhead_k;
    args.shape.seqlen_q = problem.seqlen_q;
    args.shape.seqlen_k = problem.seqlen_k;
    args.shape.max_seqlen_q = problem.max_seqlen_q;
    args.shape.min_seqlen_q = problem.min_seqlen_q;
    args.shape.hdim_q = s.hdim_q;
    args.shape.hdim_v = s.hdim_v;
    args.q.type = types.q;
    args.k.type = types.k;
    args.v.type = types.v;
    args.o.type = types.o;
    args.bias.type = types.bias;
    args.randval.type = ElementType::uint8;
    for (TensorView* view : {&args.q, &args.k, &args.v, &args.o}) view->data = placeholder<std::uint64_t>();
    if (s.has_lse) args.lse.data = placeholder<std::uint64_t>();
    if (s.is_store_randval) args.randval.data = placeholder<std::uint64_t>();
    if (s.bias == BiasType::elementwise) args.bias.data = placeholder<std::uint64_t>();
    if (s.bias == BiasType::alibi) args.score.alibi_slopes = placeholder<float>();
    if (s.has_sink_logit) args.score.sink_logit = placeholder<float>();
    const Presence& has = problem.presence;
    const std::int32_t* array = placeholder<std::int32_t>();
    if (has.seqstart_q) args.lengths.seqstart_q = array;
    if (has.seqstart_k) args.lengths.seqstart_k = array;
    if (has.seqlen_q) args.lengths.seqlen_q = array;
    if (has.seqlen_k) args.lengths.seqlen_k = array;
    if (has.cu_seqlen_q) args.lengths.cu_seqlen_q = array;
    if (has.cu_seqlen_k) args.lengths.cu_seqlen_k = array;
    args.mask = {problem.mask_type, problem.window_left, problem.window_right, problem.sink_size};
    args.score.bias_type = s.bias;
    args.quant.qscale = s.qscale;
    // The rule of H-3 from the unpadded dimension; values that only have to be "on" get the mildest one.
    args.score.scale_s = 1.0F / std::sqrt(static_cast<float>(s.hdim_q));
    if (s.has_logits_soft_cap) args.score.logits_soft_cap = 1.0F;
    if (s.has_dropout) args.dropout.p_drop = 0.5F;
    return args;
}

} // namespace fmha
