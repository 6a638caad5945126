#pragma once

#include "dispatcher/types/error.hpp"
#include "dispatcher/types/kernel_instance.hpp"
#include "dispatcher/types/mask_args.hpp"
#include "kernels/targets/cannot_launch.hpp"
#include "kernels/targets/null_tensors.hpp"
#include "kernels/targets/with_program.hpp"

#include <string>
#include <utility>

namespace fmha::targets {

/// Why a kernel of `config` cannot be launched with the arguments of its program.
template <class Program>
std::optional<std::string> cannot_launch(Program, const KernelConfig& config,
                                         const typename Program::Args& args) {
    return cannot_launch(config, args);
}
inline std::optional<std::string> cannot_launch(kernels::Program<KernelFamily::fwd_splitkv>,
                                                const KernelConfig& config, const SplitKvArgs& args) {
    return cannot_split(config, args);
}
inline std::optional<std::string> cannot_launch(kernels::Program<KernelFamily::fwd_splitkv_combine>,
                                                const KernelConfig& config, const SplitKvArgs& args) {
    return cannot_combine(config, args);
}
inline std::optional<std::string> cannot_launch(kernels::Program<KernelFamily::fwd_appendkv>,
                                                const KernelConfig& config, const AppendKvArgs& args) {
    return cannot_append(config, args);
}

inline std::optional<std::string> cannot_launch(kernels::Program<KernelFamily::bwd_dot_do_o>,
                                                const KernelConfig& config, const BwdArgs& args) {
    return cannot_dot(config, args);
}
inline std::optional<std::string> cannot_launch(kernels::Program<KernelFamily::bwd_dq_dk_dv>,
                                                const KernelConfig& config, const BwdArgs& args) {
    return cannot_differentiate(config, args);
}
inline std::optional<std::string> cannot_launch(kernels::Program<KernelFamily::bwd_convert_dq>,
                                                const KernelConfig& config, const BwdArgs& args) {
    return cannot_convert_dq(config, args);
}

/// The first tensor of a program's launch that is null and has elements, one sentence.
template <class Program, class AskElements>
std::optional<std::string> null_tensor(Program, const typename Program::Args& args, AskElements elements) {
    return null_tensor(args, [&] { return elements(args.shape, args.lengths); });
}
/// The lengths of queries alone, where those of keys may be absent.
inline LengthArrays query_lengths(const LengthArrays& lengths) {
    LengthArrays queries;
    queries.seqstart_q = queries.seqstart_k = lengths.seqstart_q;
    return queries;
}
/// What has elements where lengths of keys are those of a cache: of entries, or one for all, unless `seqstart_k` is there (P-3).
template <class Args, class AskElements>
Elements cached_elements(const Args& args, AskElements elements) {
    Shape shape = args.shape;
    if (args.lengths.seqstart_k == nullptr) shape.mode = Mode::batch;
    return elements(shape, args.lengths);
}
/// The cache of attention: K and V have elements where the pool has pages, slots have keys, or packed sequences do; the block table
/// where any entry has keys.
template <class Args, class AskElements>
std::optional<std::string> null_cache(const Args& args, AskElements elements) {
    const KvPlace& place = args.place;
    const bool paged = place.page_size > 0;
    const auto of_keys = [&] { return cached_elements(args, elements); };
    if (!paged && args.shape.mode == Mode::group && args.lengths.seqstart_k != nullptr)
        return null_tensor({{"k", args.k, &Elements::keys}, {"v", args.v, &Elements::keys}}, of_keys);
    if (paged && place.lookup != KvLookup::sglang_1d && place.block_table == nullptr && of_keys().keys)
        return "pages need a block_table, which is NULL; allowed only where no sequence has a key";
    if ((paged ? place.page_count : args.shape.seqlen_k) == 0) return std::nullopt;
    return null_tensor({{"k", args.k, &Elements::queries}, {"v", args.v, &Elements::queries}},
                       [&] { return elements(args.shape, query_lengths(args.lengths)); });
}
/// The inputs of attention over a cache.
template <class Args, class AskElements>
std::optional<std::string> null_input(const Args& args, AskElements elements) {
    const auto ask = [&] { return elements(args.shape, query_lengths(args.lengths)); };
    auto reason = null_tensor({{"q", args.q, &Elements::queries}}, ask);
    if (!reason) reason = null_cache(args, elements);
    const bool has_bias = args.score.bias_type == BiasType::elementwise;
    if (!reason && has_bias && args.bias.data == nullptr && cached_elements(args, elements).keys)
        reason = null_tensor({{"bias", args.bias, &Elements::queries}}, ask);
    const QScale scale = args.quant.qscale;
    if (reason || scale == QScale::no_scale) return reason;
    const auto ask_with_pages = [&] {
        Elements has = ask();
        has.pages = args.place.page_count > 0;
        return has;
    };
    const bool by_row = scale == QScale::per_token_head, by_page = scale == QScale::kv_blockscale;
    return null_tensor(
        {{"q_descale", args.quant.q_descale, by_row ? &Elements::queries : &Elements::scalars},
         {"k_descale", args.quant.k_descale, by_row || by_page ? &Elements::pages : &Elements::scalars},
         {"v_descale", args.quant.v_descale, by_page ? &Elements::pages : &Elements::scalars}},
        ask_with_pages);
}
template <class AskElements>
std::optional<std::string> null_tensor(kernels::Program<KernelFamily::fwd_pagedkv>, const PagedKvArgs& args,
                                       AskElements elements) {
    const auto ask = [&] { return elements(args.shape, query_lengths(args.lengths)); };
    auto reason = null_input(args, elements);
    return reason ? reason : null_tensor({{"o", args.o, &Elements::queries}}, ask);
}
template <class AskElements>
std::optional<std::string> null_tensor(kernels::Program<KernelFamily::batch_prefill>,
                                       const BatchPrefillArgs& args, AskElements elements) {
    const auto ask = [&] { return elements(args.shape, query_lengths(args.lengths)); };
    auto reason = null_input(args, elements);
    return reason ? reason : null_tensor({{"o", args.o, &Elements::queries}}, ask);
}
template <class AskElements>
std::optional<std::string> null_tensor(kernels::Program<KernelFamily::fwd_splitkv>, const SplitKvArgs& args,
                                       AskElements elements) {
    const auto ask = [&] { return elements(args.shape, query_lengths(args.lengths)); };
    auto reason = null_input(args, elements);
    return reason ? reason
                  : null_tensor({{"o_acc", args.partials.o_acc, &Elements::queries},
                                 {"lse_acc", args.partials.lse_acc, &Elements::queries}},
                                ask);
}
template <class AskElements>
std::optional<std::string> null_tensor(kernels::Program<KernelFamily::fwd_splitkv_combine>,
                                       const SplitKvArgs& args, AskElements elements) {
    return null_tensor({{"o", args.o, &Elements::queries},
                        {"o_acc", args.partials.o_acc, &Elements::queries},
                        {"lse_acc", args.partials.lse_acc, &Elements::queries}},
                       [&] { return elements(args.shape, query_lengths(args.lengths)); });
}
template <class AskElements>
std::optional<std::string> null_tensor(kernels::Program<KernelFamily::fwd_appendkv>, const AppendKvArgs& args,
                                       AskElements elements) {
    Shape added = args.shape;
    added.seqlen_k = args.seqlen_knew;
    const auto ask = [&] { return elements(added, LengthArrays()); };
    auto reason = null_tensor({{"k", args.k, &Elements::keys},
                               {"v", args.v, &Elements::keys},
                               {"k_new", args.k_new, &Elements::keys},
                               {"v_new", args.v_new, &Elements::keys}},
                              ask);
    if (reason || args.rope.type == Rope::none) return reason;
    reason =
        null_tensor({{"cos", args.rope.cos, &Elements::keys}, {"sin", args.rope.sin, &Elements::keys}}, ask);
    if (reason || !args.q.present()) return reason;
    return null_tensor(
        {{"cos", args.rope.cos, &Elements::queries}, {"sin", args.rope.sin, &Elements::queries}}, ask);
}

template <class AskElements>
std::optional<std::string> null_tensor(kernels::Program<KernelFamily::bwd_dot_do_o>, const BwdArgs& args,
                                       AskElements elements) {
    return null_tensor({{"o", args.o, &Elements::queries},
                        {"d_o", args.d_o, &Elements::queries},
                        {"lse", args.lse, &Elements::queries},
                        {"d", args.d, &Elements::queries}},
                       [&] { return elements(args.shape, args.lengths); });
}
template <class AskElements>
std::optional<std::string> null_tensor(kernels::Program<KernelFamily::bwd_dq_dk_dv>, const BwdArgs& args,
                                       AskElements elements) {
    const auto ask = [&] { return elements(args.shape, args.lengths); };
    auto reason = null_tensor({{"q", args.q, &Elements::queries},
                               {"d_o", args.d_o, &Elements::queries},
                               {"lse", args.lse, &Elements::queries},
                               {"d", args.d, &Elements::queries},
                               {"k", args.k, &Elements::keys},
                               {"v", args.v, &Elements::keys},
                               {"dk", args.dk, &Elements::keys},
                               {"dv", args.dv, &Elements::keys}},
                              ask);
    if (!reason && args.score.bias_type == BiasType::elementwise)
        reason = null_tensor({{"bias", args.bias, &Elements::pairs}}, ask);
    return reason;
}
template <class AskElements>
std::optional<std::string> null_tensor(kernels::Program<KernelFamily::bwd_convert_dq>, const BwdArgs& args,
                                       AskElements elements) {
    return null_tensor({{"dq", args.dq, &Elements::queries}},
                       [&] { return elements(args.shape, args.lengths); });
}

/// Of one kernel of the program.
template <class Program, class AskElements>
std::optional<std::string> null_tensor(Program program, const KernelConfig&,
                                       const typename Program::Args& args, AskElements elements) {
    return null_tensor(program, args, elements);
}
/// A main kernel of backward may take its random bytes from memory; one with all query rows in one tile stores dQ itself.
template <class AskElements>
std::optional<std::string> null_tensor(kernels::Program<KernelFamily::bwd_dq_dk_dv> program,
                                       const KernelConfig& config, const BwdArgs& args,
                                       AskElements elements) {
    auto reason = null_tensor(program, args, elements);
    if (!reason && config.signature.is_store_randval && args.dropout.p_drop > 0.0F)
        reason = null_tensor({{"randval", args.randval, &Elements::pairs}},
                             [&] { return elements(args.shape, args.lengths); });
    if (!reason && config.algorithm.max_seq_len_q > 0)
        reason = null_tensor(kernels::Program<KernelFamily::bwd_convert_dq>(), args, elements);
    return reason;
}

/// Calls `run(program, args)` with the program of the kernel `config` and the arguments of its family, their mask as kernels take it.
/// Throws UnsupportedInvocation when the kernel cannot be launched with the arguments,
/// ArgumentTypeError when they are another family's, InputError when a tensor with elements is null.
/// `elements(shape, lengths)` says which elements there are; `Elements::of` does where the lengths can be read.
template <class AskElements, class Run>
void with_launch(const KernelConfig& config, const Invocation& invocation, AskElements elements, Run&& run) {
    with_program(config.signature.family, [&]<class Program>(Program program) {
        const auto* args = std::get_if<typename Program::Args>(&invocation);
        if (args == nullptr)
            throw ArgumentTypeError("kernel " + identifier(config) + " takes the arguments of family " +
                                    std::string(to_string(config.signature.family)));
        if (const auto reason = cannot_launch(program, config, *args)) throw UnsupportedInvocation(*reason);
        if (const auto reason = null_tensor(program, config, *args, elements)) throw InputError(*reason);
        if (const auto reason = too_many_blocks(typename Program::Grid(config, *args).size()))
            throw UnsupportedInvocation(*reason);
        auto taken = *args;
        if constexpr (requires { taken.mask; }) taken.mask = for_kernels(taken.mask);
        run(program, std::as_const(taken));
    });
}

} // namespace fmha::targets
