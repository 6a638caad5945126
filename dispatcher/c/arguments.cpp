#include "dispatcher/c/arguments.hpp"

#include "dispatcher/c/guarded.hpp"
#include "dispatcher/invocation.hpp"
#include "dispatcher/types/check_cache.hpp"
#include "dispatcher/types/check_contents.hpp"
#include "dispatcher/types/check_lengths.hpp"
#include "dispatcher/types/check_memory.hpp"
#include "dispatcher/types/check_outputs.hpp"
#include "dispatcher/types/check_values.hpp"
#include "dispatcher/types/error.hpp"
#include "dispatcher/types/mask_args.hpp"
#include "kernels/targets/null_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace fmha::c {
namespace {

template <NamedEnum E>
E enumerator(const char* field, std::int32_t code) {
    if (const auto value = enum_of_code<E>(code)) return *value;
    throw InputError(fmt::format("{} is {}, which is no code of {}", field, code, allowed_names<E>()));
}

/// Later versions may give the member a meaning, and a caller who did not clear the structure shows here.
void require_zero(const char* field, std::int32_t value) {
    if (value != 0) throw InputError(fmt::format("{} is {}; allowed: 0", field, value));
}

bool flag(const char* field, std::int32_t value) {
    if (value != 0 && value != 1) throw InputError(fmt::format("{} is {}; allowed: 0 and 1", field, value));
    return value == 1;
}

TensorView view(const fmha_tensor& tensor, ElementType type) {
    return {tensor.data, type, tensor.batch_stride, tensor.head_stride, tensor.row_stride, tensor.col_stride};
}

/// The parts that the structures of all APIs share.
class Reader {
  public:
    Reader(const fmha_shape& shape, const ArchName& arch)
        : in_(shape),
          types_(element_types(enumerator<DataType>("shape.data_type", shape.data_type), fp8_flavour(arch))) {
        require_zero("shape.reserved", shape.reserved);
    }

    Signature traits() const {
        Signature traits;
        traits.data_type = enumerator<DataType>("shape.data_type", in_.data_type);
        traits.v_layout = enumerator<VLayout>("shape.v_layout", in_.v_layout);
        return traits;
    }
    const ElementTypes& types() const { return types_; }

    Shape shape() const {
        return {.mode = enumerator<Mode>("shape.mode", in_.mode),
                .batch = in_.batch,
                .nhead_q = in_.nhead_q,
                .nhead_k = in_.nhead_k,
                .seqlen_q = in_.seqlen_q,
                .seqlen_k = in_.seqlen_k,
                .max_seqlen_q = in_.max_seqlen_q,
                .min_seqlen_q = in_.min_seqlen_q,
                .hdim_q = in_.hdim_q,
                .hdim_v = in_.hdim_v};
    }
    ScoreArgs score(const fmha_score& in) const {
        return {.bias_type = enumerator<BiasType>("score.bias_type", in.bias_type),
                .alibi_slopes = in.alibi_slopes,
                .alibi_stride = in.alibi_stride,
                .scale_s = in.scale_s != 0.0F ? in.scale_s : 1.0F / std::sqrt(static_cast<float>(in_.hdim_q)),
                .scale_o = in.scale_o != 0.0F ? in.scale_o : 1.0F,
                .logits_soft_cap = in.logits_soft_cap,
                .sink_logit = in.sink_logit};
    }

  private:
    const fmha_shape& in_;
    ElementTypes types_;
};

LengthArrays lengths(const fmha_lengths& in) {
    return {in.seqstart_q, in.seqstart_k, in.seqlen_q, in.seqlen_k, in.cu_seqlen_q, in.cu_seqlen_k};
}

MaskArgs mask(const fmha_mask_args& in) {
    require_zero("mask.reserved", in.reserved);
    return {enumerator<MaskType>("mask.type", in.type), in.window_left, in.window_right, in.sink_size};
}

DropoutArgs dropout(const fmha_dropout& in) {
    require_zero("dropout.reserved", in.reserved);
    return {in.p_drop, in.seed, in.offset};
}

QuantArgs quant(const fmha_quant& in) {
    require_zero("quant.reserved", in.reserved);
    QuantArgs quant;
    quant.qscale = enumerator<QScale>("quant.qscale", in.qscale);
    const ElementType scale = quant.qscale == QScale::mx ? ElementType::e8m0 : ElementType::fp32;
    quant.q_descale = view(in.q_descale, scale);
    quant.k_descale = view(in.k_descale, scale);
    quant.v_descale = view(in.v_descale, scale);
    if (in.block_scale_size_q != 0) quant.block_scale_size_q = in.block_scale_size_q;
    if (in.block_scale_size_k != 0) quant.block_scale_size_k = in.block_scale_size_k;
    quant.block_scale_seqstart_q = in.block_scale_seqstart_q;
    quant.block_scale_seqstart_k = in.block_scale_seqstart_k;
    return quant;
}

/// `has_layout`: batch prefill, which states how pages are laid out and looked up.
KvPlace place(const fmha_kv_place& in, bool has_layout) {
    require_zero("place.reserved", in.reserved);
    KvPlace out{
        .block_table = in.block_table,
        .block_table_stride = in.block_table_stride,
        .kv_indptr = in.kv_indptr,
        .kv_page_indices = in.kv_page_indices,
        .kv_last_page_lens = in.kv_last_page_lens,
        .cache_batch_idx = in.cache_batch_idx,
        .page_size = in.page_size,
        .page_count = in.page_count,
        .is_gappy = flag("place.is_gappy", in.is_gappy),
        .layout = has_layout ? enumerator<KvLayout>("place.kv_layout", in.kv_layout) : KvLayout::unset,
        .lookup = has_layout ? enumerator<KvLookup>("place.kv_lookup", in.kv_lookup) : KvLookup::unset};
    check_page_numbers(out);
    return out;
}

/// Members that one API alone has.
template <class Args, class In>
void convert_rest(Args&, const In&, const Reader&) {}

void convert_rest(SplitKvArgs& args, const fmha_splitkv_args& in, const Reader&) {
    args.partials.num_splits = in.num_splits;
}

void convert_rest(AppendKvArgs& args, const fmha_appendkv_args& in, const Reader& read) {
    const ElementTypes& types = read.types();
    args.seqlen_knew = in.seqlen_knew;
    args.k_new = view(in.k_new, types.k);
    args.v_new = view(in.v_new, types.v);
    args.has_mask = flag("args.has_mask", in.has_mask);
    require_zero("rope.reserved", in.rope.reserved);
    args.rope = {enumerator<Rope>("rope.type", in.rope.type), in.rope.rotary_dim, view(in.rope.cos, types.k),
                 view(in.rope.sin, types.k)};
}

void convert_rest(BwdArgs& args, const fmha_bwd_args& in, const Reader& read) {
    const ElementTypes& types = read.types();
    args.d_o = view(in.d_o, types.o);
    args.d = view(in.d, ElementType::fp32);
    args.dq = view(in.dq, types.q);
    args.dk = view(in.dk, types.k);
    args.dv = view(in.dv, types.v);
    args.dbias = view(in.dbias, types.bias);
    args.d_sink = in.d_sink;
    args.workspace = in.workspace;
    args.deterministic = flag("args.deterministic", in.deterministic);
    args.reduce_dk_dv = flag("args.reduce_dk_dv", in.reduce_dk_dv);
}

/// Rows of a packed batch follow each other (L-2), so that a batch stride says nothing: the one of an array of one batch is what it
/// may be. Pages have theirs in any mode, and their descales too.
template <class Args>
void drop_batch_strides(Args& args) {
    const auto drop = [](TensorView& tensor) { tensor.batch_stride = 0; };
    drop(args.q);
    if constexpr (requires { args.o; }) drop(args.o);
    if constexpr (requires { args.lse; }) drop(args.lse);
    if constexpr (requires { args.bias; }) drop(args.bias);
    if constexpr (requires { args.randval; }) drop(args.randval);
    if constexpr (requires { args.quant; }) drop(args.quant.q_descale);
    if constexpr (requires { args.d_o; })
        for (TensorView* tensor : {&args.d_o, &args.d, &args.dq, &args.dk, &args.dv, &args.dbias})
            drop(*tensor);
    if constexpr (requires { args.place; })
        if (args.place.page_size > 0) return;
    drop(args.k);
    drop(args.v);
    if constexpr (requires { args.quant; }) {
        drop(args.quant.k_descale);
        drop(args.quant.v_descale);
    }
}

/// Every part that these arguments have; the C structure must have it too, or this does not compile.
template <class Args, class In>
Args converted(const In& in, const Reader& read) {
    if constexpr (requires { in.reserved; }) require_zero("args.reserved", in.reserved);
    const ElementTypes& types = read.types();
    Args args;
    args.shape = read.shape();
    args.q = view(in.q, types.q);
    args.k = view(in.k, types.k);
    args.v = view(in.v, types.v);
    if constexpr (requires { args.o; }) args.o = view(in.o, types.o);
    if constexpr (requires { args.lse; }) args.lse = view(in.lse, ElementType::fp32);
    if constexpr (requires { args.bias; }) args.bias = view(in.bias, types.bias);
    if constexpr (requires { args.randval; }) args.randval = view(in.randval, ElementType::uint8);
    args.lengths = lengths(in.lengths);
    if constexpr (requires { args.mask; }) args.mask = mask(in.mask);
    if constexpr (requires { args.score; }) args.score = read.score(in.score);
    if constexpr (requires { args.dropout; }) args.dropout = dropout(in.dropout);
    if constexpr (requires { args.quant; }) args.quant = quant(in.quant);
    if constexpr (requires { args.place; })
        args.place = place(in.place, std::same_as<Args, BatchPrefillArgs>);
    convert_rest(args, in, read);
    if (args.shape.mode == Mode::group) drop_batch_strides(args);
    return args;
}

/// Value rules of arguments that have the parts for them.
template <class Args>
void check_values_of(const Args& args, DataType type, Memory memory) {
    std::span<const std::int32_t> seqstart_k;
    if (memory == Memory::host && args.shape.mode == Mode::group && args.lengths.seqstart_k != nullptr)
        seqstart_k = {args.lengths.seqstart_k, static_cast<std::size_t>(args.shape.batch) + 1};
    if constexpr (requires { args.score; }) {
        DropoutArgs dropout;
        QuantArgs quant;
        if constexpr (requires { args.dropout; }) dropout = args.dropout;
        if constexpr (requires { args.quant; }) quant = args.quant;
        check_values(type, args.score, dropout, quant, seqstart_k);
        const std::int64_t stride = args.score.alibi_stride, heads = args.shape.nhead_q;
        if (args.score.bias_type == BiasType::alibi && stride != 0 && stride != heads)
            throw ProblemError("A-1", "alibi_stride", std::to_string(stride),
                               fmt::format("alibi_stride is {}; allowed: 0, and nhead_q = {} for slopes of "
                                           "every entry",
                                           stride, heads));
    }
}

/// The lengths that the offsets of a packed batch give, where their caller has them on the host too.
PackedLengths stated_lengths(const fmha_bwd_args& in) {
    if (in.host_seqstart_q == nullptr && in.host_seqstart_k == nullptr) return {};
    require(in.host_seqstart_q != nullptr, "args.host_seqstart_q");
    require(in.host_seqstart_k != nullptr, "args.host_seqstart_k");
    if (in.shape.mode != FMHA_GROUP)
        throw InputError("args.host_seqstart_q is given for a batch that is not packed; allowed: NULL");
    const auto lengths = [count = static_cast<std::size_t>(in.shape.batch) + 1](const std::int32_t* starts,
                                                                                const char* field) {
        return packed_lengths(std::span(starts, count), field);
    };
    return {lengths(in.host_seqstart_q, "host_seqstart_q"), lengths(in.host_seqstart_k, "host_seqstart_k")};
}

template <class In, class Args>
Call read_call(const void* args, const ArchName& arch, Memory memory) {
    const In* in = static_cast<const In*>(args);
    check_header(in, "args");
    const Reader read(in->shape, arch);
    auto converted_args = converted<Args>(*in, read);
    Call call;
    call.problem = problem_of(read.traits(), converted_args, arch);
    call.problem.max_seqlen_k = in->shape.max_seqlen_k;
    validate(call.problem);
    check_values_of(converted_args, read.traits().data_type, memory);
    if constexpr (requires { converted_args.mask; }) converted_args.mask = for_kernels(converted_args.mask);
    call.arguments = converted_args;
    if constexpr (requires { in->host_seqstart_q; }) call.lengths = stated_lengths(*in);
    return call;
}

void require_slopes(const ScoreArgs& score) {
    require(score.bias_type != BiasType::alibi || score.alibi_slopes != nullptr, "score.alibi_slopes");
}

} // namespace

template <class T>
void check_header(const T* object, const char* name) {
    require(object != nullptr, name);
    if (object->size != sizeof(T))
        throw InputError(fmt::format("{}.size is {}, this library's structure has {} bytes", name,
                                     object->size, sizeof(T)));
    if (object->version != FMHA_ABI_VERSION)
        throw InputError(fmt::format("{}.version is {}, this library implements {}", name, object->version,
                                     FMHA_ABI_VERSION));
}
template void check_header(const fmha_context_options*, const char*);
template void check_header(const fmha_run_info*, const char*);

Call call_of(const void* args, const ArchName& arch, Memory memory) {
    require(args != nullptr, "args");
    // All six begin with size, version and API.
    const auto api = static_cast<const fmha_fwd_args*>(args)->api;
    const ApiFamily family = enumerator<ApiFamily>("args.api", api);
    using Read = Call (*)(const void*, const ArchName&, Memory);
    static constexpr std::array<std::pair<ApiFamily, Read>, 6> structures{
        {{ApiFamily::fwd, read_call<fmha_fwd_args, FwdArgs>},
         {ApiFamily::fwd_pagedkv, read_call<fmha_pagedkv_args, PagedKvArgs>},
         {ApiFamily::fwd_splitkv, read_call<fmha_splitkv_args, SplitKvArgs>},
         {ApiFamily::fwd_appendkv, read_call<fmha_appendkv_args, AppendKvArgs>},
         {ApiFamily::batch_prefill, read_call<fmha_batch_prefill_args, BatchPrefillArgs>},
         {ApiFamily::bwd, read_call<fmha_bwd_args, BwdArgs>}}};
    const auto* const found = std::ranges::find(structures, family, &std::pair<ApiFamily, Read>::first);
    if (found == structures.end())
        throw InputError(fmt::format("args.api is {}: family {} has no C structure", api, to_string(family)));
    return found->second(args, arch, memory);
}

void check_tensors(const Call& call, Memory memory) {
    check_outputs(call.arguments, call.problem.max_seqlen_k);
    if (memory == Memory::host) check_contents(call.arguments);
    check_memory(call.arguments, memory == Memory::host);
    std::visit(
        [memory](const auto& args) {
            if constexpr (requires { args.score; }) require_slopes(args.score);
            if constexpr (std::same_as<std::remove_cvref_t<decltype(args)>, FwdArgs>) {
                require_block_starts(args);
                if (memory == Memory::device) return;
                const auto elements = [&] { return targets::Elements::of(args.shape, args.lengths); };
                if (const auto reason = targets::null_tensor(args, elements)) throw InputError(*reason);
            }
        },
        call.arguments);
}

} // namespace fmha::c
