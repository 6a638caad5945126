#include "dispatcher/invocation.hpp"

#include "dispatcher/plan/plan.hpp"
#include "dispatcher/tensor_maps.hpp"
#include "dispatcher/types/element.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/family_traits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <numeric>
#include <string_view>
#include <variant>

namespace fmha {
namespace {

template <class Args>
constexpr ApiFamily api_of = ApiFamily::fwd;
#define FMHA_API_OF(name, Args, ...)                                                                         \
    template <>                                                                                              \
    constexpr ApiFamily api_of<Args> = ApiFamily::name;
FMHA_API_FAMILIES(FMHA_API_OF)
#undef FMHA_API_OF

Problem begin(const Signature& traits, ApiFamily api, const Shape& shape, const ArchName& arch) {
    Problem problem;
    problem.api_family = api;
    problem.arch = arch;
    problem.signature = traits;
    Signature& s = problem.signature;
    s.family = main_stage(api);
    s.mode = shape.mode;
    s.hdim_q = shape.hdim_q;
    s.hdim_v = shape.hdim_v;
    problem.batch = shape.batch;
    problem.nhead_q = shape.nhead_q;
    problem.nhead_k = shape.nhead_k;
    problem.seqlen_q = shape.seqlen_q;
    problem.seqlen_k = shape.seqlen_k;
    problem.max_seqlen_q = shape.max_seqlen_q;
    problem.min_seqlen_q = shape.min_seqlen_q;
    return problem;
}

void add(Problem& problem, const LengthArrays& lengths) {
    Presence& has = problem.presence;
    has.seqstart_q = lengths.seqstart_q != nullptr;
    has.seqstart_k = lengths.seqstart_k != nullptr;
    has.seqlen_q = lengths.seqlen_q != nullptr;
    has.seqlen_k = lengths.seqlen_k != nullptr;
    has.cu_seqlen_q = lengths.cu_seqlen_q != nullptr;
    has.cu_seqlen_k = lengths.cu_seqlen_k != nullptr;
}

void add(Problem& problem, const MaskArgs& mask) {
    problem.mask_type = mask.type;
    problem.window_left = mask.left;
    problem.window_right = mask.right;
    problem.sink_size = mask.sink;
}

void add(Problem& problem, const ScoreArgs& score) {
    problem.signature.bias = score.bias_type;
    problem.signature.has_logits_soft_cap = score.logits_soft_cap != 0.0F;
    problem.signature.has_sink_logit = score.sink_logit != nullptr;
}

void add(Problem& problem, const DropoutArgs& dropout) {
    problem.signature.has_dropout = dropout.p_drop > 0.0F;
}

void add(Problem& problem, const QuantArgs& quant) {
    problem.signature.qscale = quant.qscale;
}

void add(Problem& problem, const KvPlace& place) {
    Signature& s = problem.signature;
    s.use_paged_kv = place.page_size > 0;
    if (s.use_paged_kv) s.page_size = static_cast<std::int32_t>(place.page_size);
    s.kv_layout = place.layout;
    s.kv_lookup = place.lookup;
    // A table without an element may be null; batch prefill says how pages are looked up.
    problem.presence.block_table =
        place.block_table != nullptr || (s.use_paged_kv && s.kv_lookup == KvLookup::unset);
    problem.presence.cache_batch_idx = place.cache_batch_idx != nullptr;
    problem.presence.is_gappy = place.is_gappy;
}

/// The largest power of two up to `most_tensor_alignment` that divides addresses and strides of Q, K and V, in bytes. V by column counts
/// in batch mode: no kernel asks for its alignment in group mode, where it follows from the sum of all lengths. Pages in vectors count nowhere.
template <class Args>
std::int64_t alignment_of(const Args& args, const Signature& s) {
    const bool by_column = s.v_layout == VLayout::column;
    const bool in_vectors = s.kv_layout == KvLayout::vectorized;
    std::int64_t common = most_tensor_alignment;
    for (const TensorView* view : {&args.q, &args.k, &args.v}) {
        if (in_vectors && view != &args.q) continue;
        const bool lines_of_keys = view == &args.v && by_column;
        if (lines_of_keys && s.mode == Mode::group) continue;
        common = std::gcd(common, static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(view->data) %
                                                            most_tensor_alignment));
        // Of a stride whose bytes exceed 64 bits the end is all that counts; two elements of 4 bits make a byte.
        for (const std::int64_t stride :
             {view->batch_stride, view->head_stride, lines_of_keys ? view->col_stride : view->row_stride})
            common = std::gcd(common, element_bytes(view->type, stride % (2 * most_tensor_alignment)));
    }
    return common;
}

std::int64_t pool_bytes(const KvPlace& place, std::string_view name, const TensorView& pool) {
    // 64 bits an element leave room for every element type.
    std::int64_t bits = 64;
    for (const std::int64_t factor : {place.page_count, pool.batch_stride})
        if (__builtin_mul_overflow(bits, factor, &bits))
            throw ProblemError("L-1", std::string(name),
                               fmt::format("{}*{}", place.page_count, pool.batch_stride),
                               fmt::format("{} pages of {} elements of {} exceed 64-bit addressing",
                                           place.page_count, pool.batch_stride, name));
    return element_bytes(pool.type, place.page_count * pool.batch_stride);
}

} // namespace

template <class Args>
Problem problem_of(const Signature& traits, const Args& args, const ArchName& arch) {
    constexpr ApiTraits api = traits_of(api_of<Args>);
    Problem problem = begin(traits, api.api, args.shape, arch);
    Signature& s = problem.signature;
    add(problem, args.lengths);
    if constexpr (requires { args.mask; }) add(problem, args.mask);
    if constexpr (requires { args.score; }) add(problem, args.score);
    if constexpr (requires { args.dropout; }) add(problem, args.dropout);
    if constexpr (requires { args.quant; }) add(problem, args.quant);
    if constexpr (requires { args.place; }) add(problem, args.place);
    if constexpr (requires { args.partials; }) problem.num_splits = args.partials.num_splits;
    // Backward reads an LSE, which is no choice of the caller's.
    if constexpr (requires { args.lse; } && !api.gradients) s.has_lse = args.lse.present();
    if constexpr (requires { args.randval; }) s.is_store_randval = args.randval.present();
    if constexpr (requires { args.rope; }) {
        s.rope = args.rope.type;
        problem.rotary_dim = args.rope.rotary_dim;
        problem.presence.rotary = args.rope.cos.present() && args.rope.sin.present();
    }
    // Which mask does not matter, only that there is one (V-5).
    if constexpr (requires { args.has_mask; })
        if (args.has_mask) problem.mask_type = MaskType::top_left;
    if constexpr (requires { args.dbias; }) s.has_dbias = args.dbias.present();
    if constexpr (requires { args.deterministic; }) s.is_deterministic = args.deterministic;
    if constexpr (api.tensor_maps) {
        problem.tensor_alignment = alignment_of(args, s);
        problem.tensors_mappable = tensor_maps_have(args, s.v_layout);
    }
    if constexpr (requires { args.reduce_dk_dv; }) problem.reduce_dk_dv = args.reduce_dk_dv;
    if constexpr (api.lists_pages)
        problem.kv_pool_bytes =
            std::max(pool_bytes(args.place, "k", args.k), pool_bytes(args.place, "v", args.v));
    return normalised(problem);
}
#define FMHA_PROBLEM_OF(name, Args, ...)                                                                     \
    template Problem problem_of(const Signature&, const Args&, const ArchName&);
FMHA_API_FAMILIES(FMHA_PROBLEM_OF)
#undef FMHA_PROBLEM_OF

namespace {

/// What the arguments leave open is as the problem has it.
Problem completed(Problem posed, const Problem& asked) {
    posed.max_seqlen_k = asked.max_seqlen_k;
    posed.compute_units = asked.compute_units;
    if (posed.signature.mode == Mode::group) {
        posed.seqlen_q = asked.seqlen_q;
        posed.seqlen_k = asked.seqlen_k;
    } else if (posed.max_seqlen_q == 0 || asked.max_seqlen_q == 0) {
        posed.max_seqlen_q = asked.max_seqlen_q;
    }
    const ApiTraits& api = traits_of(asked.api_family);
    // Batch prefill says how its pages are looked up, not that there is a table.
    if (api.lists_pages) posed.presence.block_table = asked.presence.block_table;
    if (posed.kv_pool_bytes == 0 || asked.kv_pool_bytes == 0) posed.kv_pool_bytes = asked.kv_pool_bytes;
    // Appending knows only that there is a mask (V-5).
    if (!api.attends && posed.mask_type != MaskType::no_mask && asked.mask_type != MaskType::no_mask) {
        posed.mask_type = asked.mask_type;
        posed.window_left = asked.window_left;
        posed.window_right = asked.window_right;
        posed.sink_size = asked.sink_size;
    }
    posed.tensor_alignment = std::min(posed.tensor_alignment, asked.tensor_alignment);
    posed.tensors_mappable = posed.tensors_mappable && asked.tensors_mappable;
    return normalised(posed);
}

template <class Args>
void require_elements(const Problem& problem, const Args& args) {
    const auto types_of = [&](Fp8Flavour flavour) {
        return element_types(problem.signature.data_type, flavour);
    };
    const ElementTypes types = types_of(fp8_flavour(problem.arch));
    // Without an architecture kernels of either flavour may have been chosen.
    const ElementTypes others = problem.arch.view().empty() ? types_of(Fp8Flavour::fnuz) : types;
    const auto check = [&](const char* name, const TensorView& tensor, ElementType ElementTypes::*of) {
        if (tensor.present() && tensor.type != types.*of && tensor.type != others.*of)
            throw InputError(fmt::format("{} of the arguments holds {}; the problem has {}", name,
                                         to_string(tensor.type), to_string(types.*of)));
    };
    check("q", args.q, &ElementTypes::q);
    if constexpr (requires { args.k; }) check("k", args.k, &ElementTypes::k);
    if constexpr (requires { args.v; }) check("v", args.v, &ElementTypes::v);
    if constexpr (requires { args.o; }) check("o", args.o, &ElementTypes::o);
    if constexpr (requires { args.bias; }) check("bias", args.bias, &ElementTypes::bias);
}

} // namespace

void require_posed(const Problem& problem, const Invocation& arguments) {
    std::visit(
        [&]<class Args>(const Args& args) {
            if constexpr (std::same_as<Args, std::monostate>) {
                throw ArgumentTypeError(fmt::format("the problem is of {}, there are no arguments",
                                                    to_string(problem.api_family)));
            } else {
                if (api_of<Args> != problem.api_family)
                    throw ArgumentTypeError(fmt::format("the problem is of {}, the arguments are of {}",
                                                        to_string(problem.api_family),
                                                        to_string(api_of<Args>)));
                const Problem asked = normalised(problem);
                const Problem posed = completed(problem_of(asked.signature, args, asked.arch), asked);
                if (const auto differing = differences(posed, asked); !differing.empty())
                    throw InputError(fmt::format("{} of the arguments is {}; the problem has {}",
                                                 differing[0].path, differing[0].left, differing[0].right));
                require_elements(asked, args);
            }
        },
        arguments);
}

} // namespace fmha
