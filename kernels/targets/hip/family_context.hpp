#pragma once

#include "kernels/targets/hip/append_context.hpp"
#include "kernels/targets/hip/backward_context.hpp"
#include "kernels/targets/hip/block_context.hpp"
#include "kernels/targets/hip/combine_context.hpp"
#include "kernels/targets/hip/gradient_rows_context.hpp"

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
struct FamilyContext<KernelFamily::fwd_splitkv> {
    template <class Machine, class Setup>
    using Type = SplitContext<Machine, Setup>;
};

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

template <>
struct FamilyContext<KernelFamily::bwd_dot_do_o> {
    template <class Machine, class Setup>
    using Type = DotDoOContext<Machine, Setup>;
};

template <>
struct FamilyContext<KernelFamily::bwd_dq_dk_dv> {
    template <class Machine, class Setup>
    using Type = BackwardContext<Machine, Setup>;
};

template <>
struct FamilyContext<KernelFamily::bwd_convert_dq> {
    template <class Machine, class Setup>
    using Type = ConvertDqContext<Machine, Setup>;
};

} // namespace fmha::hip_target
