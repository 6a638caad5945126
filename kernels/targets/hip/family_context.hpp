#pragma once

#include "kernels/targets/hip/append_context.hpp"
#include "kernels/targets/hip/block_context.hpp"
#include "kernels/targets/hip/combine_context.hpp"

namespace fmha::hip_target {

/// The block context that runs the program of a family.
template <KernelFamily family>
struct FamilyContext;

template <>
struct FamilyContext<KernelFamily::fwd> {
    template <class Machine, class Setup>
    using Type = BlockContext<Machine, Setup>;
};

template <>
struct FamilyContext<KernelFamily::fwd_pagedkv> : FamilyContext<KernelFamily::fwd> {};

template <>
struct FamilyContext<KernelFamily::fwd_splitkv> : FamilyContext<KernelFamily::fwd> {};

template <>
struct FamilyContext<KernelFamily::batch_prefill> : FamilyContext<KernelFamily::fwd> {};

template <>
struct FamilyContext<KernelFamily::fwd_splitkv_combine> {
    template <class Machine, class Setup>
    using Type = CombineContext<Machine, Setup>;
};

template <>
struct FamilyContext<KernelFamily::fwd_appendkv> {
    template <class Machine, class Setup>
    using Type = AppendContext<Machine, Setup>;
};

} // namespace fmha::hip_target
