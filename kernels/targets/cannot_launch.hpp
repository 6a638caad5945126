#pragma once

#include "dispatcher/types/args.hpp"
#include "dispatcher/types/family_traits.hpp"
#include "dispatcher/types/kernel_config.hpp"
#include "kernels/targets/stored_types.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace fmha::targets {

/// A tensor of a launch and the type that the kernel takes.
struct TypedTensor {
    std::string_view name;
    const TensorView& view;
    ElementType type;
};

/// Why a launch cannot have so many blocks: a runtime's grid ends there, and programs number their blocks in 32 bits.
std::optional<std::string> too_many_blocks(std::int64_t blocks);

// Why a kernel of `config` cannot be launched with a part of its arguments, one sentence; nullopt when it can.
std::optional<std::string> wrong_tensors(std::initializer_list<TypedTensor> tensors);
std::optional<std::string> wrong_shape(const KernelConfig& config, const Shape& shape);
/// `keys_elsewhere`: pages and their lengths say which keys an entry has (P-3, B-4).
std::optional<std::string> wrong_lengths(const Shape& shape, const LengthArrays& lengths,
                                         bool keys_elsewhere = false);
std::optional<std::string> wrong_mask(const KernelConfig& config, const MaskArgs& mask);
std::optional<std::string> wrong_score(const KernelConfig& config, const ScoreArgs& score);
std::optional<std::string> wrong_dropout(const KernelConfig& config, const DropoutArgs& dropout);
std::optional<std::string> wrong_quant(const KernelConfig& config, const QuantArgs& quant);
/// Where keys lie that are not those of forward.
std::optional<std::string> wrong_place(const KernelConfig& config, const KvPlace& place,
                                       const LengthArrays& lengths);
/// The same of batch prefill.
std::optional<std::string> wrong_pool(const KernelConfig& config, const KvPlace& place, const Shape& shape);
/// `lse` is where the kernel's family stores it.
std::optional<std::string> wrong_lse(const KernelConfig& config, const TensorView& lse);

/// nullopt when a kernel of `config` can be launched with `args`, the arguments of its family; otherwise the reason, one
/// sentence. A feature that the arguments ask for and the kernel lacks is a reason; a ragged length without a padding
/// flag is not, because a launch cannot see it on a GPU either. Of parts that a family's arguments lack nothing is asked.
template <class Args>
std::optional<std::string> cannot_launch(const KernelConfig& config, const Args& args) {
    const ElementTypes types = stored_types(config);
    std::optional<std::string> reason = wrong_shape(config, args.shape);
    const bool lists_pages = api_traits_of(config.signature.family).lists_pages;
    bool keys_elsewhere = lists_pages;
    if constexpr (requires { args.place; })
        keys_elsewhere = lists_pages || (args.place.page_size > 0 && args.lengths.seqlen_k != nullptr);
    if (!reason) reason = wrong_lengths(args.shape, args.lengths, keys_elsewhere);
    if (!reason) reason = wrong_tensors({{"q", args.q, types.q}});
    if constexpr (requires { args.k; })
        if (!reason) reason = wrong_tensors({{"k", args.k, types.k}, {"v", args.v, types.v}});
    if (!reason) reason = wrong_tensors({{"o", args.o, types.o}});
    if constexpr (requires { args.score; }) {
        if (!reason) reason = wrong_score(config, args.score);
        if (!reason && args.score.bias_type == BiasType::elementwise)
            reason = wrong_tensors({{"bias", args.bias, types.bias}});
    }
    if constexpr (requires { args.mask; })
        if (!reason) reason = wrong_mask(config, args.mask);
    if constexpr (requires { args.lse; })
        if (!reason) reason = wrong_lse(config, args.lse);
    if constexpr (requires { args.dropout; })
        if (!reason) reason = wrong_dropout(config, args.dropout);
    if constexpr (requires { args.quant; })
        if (!reason) reason = wrong_quant(config, args.quant);
    if constexpr (requires { args.place; })
        if (!reason)
            reason = lists_pages ? wrong_pool(config, args.place, args.shape)
                                 : wrong_place(config, args.place, args.lengths);
    return reason;
}

/// The same for the main kernel of split-KV, which leaves O, the LSE and the sink logits to the kernel that combines.
std::optional<std::string> cannot_split(const KernelConfig& config, const SplitKvArgs& args);

/// The same for a kernel that combines the partial results of split-KV, whose arguments are those of its main kernel.
std::optional<std::string> cannot_combine(const KernelConfig& config, const SplitKvArgs& args);

/// The same for a kernel that appends to a cache.
std::optional<std::string> cannot_append(const KernelConfig& config, const AppendKvArgs& args);

/// The same for the three stages of backward.
std::optional<std::string> cannot_dot(const KernelConfig& config, const BwdArgs& args);
std::optional<std::string> cannot_differentiate(const KernelConfig& config, const BwdArgs& args);
std::optional<std::string> cannot_convert_dq(const KernelConfig& config, const BwdArgs& args);

} // namespace fmha::targets
