#pragma once

#include "kernels/targets/faulty_append.hpp"
#include "kernels/targets/faulty_backward.hpp"
#include "kernels/targets/faulty_cache.hpp"
#include "kernels/targets/faulty_combine.hpp"
#include "kernels/targets/faulty_context.hpp"
#include "kernels/targets/faulty_prefill.hpp"
#include "kernels/targets/hip/entry.hpp"

#include <type_traits>

/// Kernels with one known mistake, for devices. Nothing that a user builds includes this.
namespace fmha::hip_target {

/// Runs a block of `Kernel` with the context `Faulty`, made of `fault`, the machine and the kernel's constants.
template <class Kernel, class Faulty, class... Fault>
FMHA_DEVICE void run_faulty(const typename BlockParts<Kernel>::Args& args, std::int64_t block,
                            const Fault&... fault) {
    using Parts = BlockParts<Kernel>;
    auto machine = Parts::machine(args);
    Faulty context(fault..., machine, Constant<Kernel>{});
    Parts::run(context, args, block);
}

/// A launch of `Kernel` with a fault.
template <class Kernel, targets::Fault fault>
struct FaultyLaunch : Launch<Kernel> {
    __attribute__((device)) static void run(const typename Launch<Kernel>::Args& args, std::int64_t block) {
        using Constantly = targets::ConstantFault<fault>;
        run_faulty<Kernel, targets::FaultyContext<typename BlockParts<Kernel>::Context, Constantly>>(
            args, block, Constantly{});
    }
};

/// The faulty context of a stage of backward.
template <KernelFamily family, class Context>
struct FaultyStageOf;
template <class Context>
struct FaultyStageOf<KernelFamily::bwd_dot_do_o, Context> {
    using Type = targets::FaultyDotDoO<Context>;
};
template <class Context>
struct FaultyStageOf<KernelFamily::bwd_dq_dk_dv, Context> {
    using Type = targets::FaultyDqDkDv<Context>;
};
template <class Context>
struct FaultyStageOf<KernelFamily::bwd_convert_dq, Context> {
    using Type = targets::FaultyConvertDq<Context>;
};

/// The same of a stage of backward.
template <class Kernel, targets::BackwardFault fault>
struct FaultyBackwardLaunch : Launch<Kernel> {
    __attribute__((device)) static void run(const BwdArgs& args, std::int64_t block) {
        using Right = typename BlockParts<Kernel>::Context;
        run_faulty<Kernel, typename FaultyStageOf<Launch<Kernel>::family, Right>::Type>(args, block, fault,
                                                                                        args);
    }
};

/// The faulty context of a kernel over a cache; `makes`: whether kernels of a family make such mistakes. Other stages of the
/// same cases stay right.
template <class Fault, class Context>
struct FaultyOverCache;
template <class Context>
struct FaultyOverCache<targets::CacheFault, Context> {
    using Type = targets::FaultyCache<Context>;
    static constexpr bool makes(KernelFamily family) {
        return family == KernelFamily::fwd_splitkv || family == KernelFamily::fwd_pagedkv;
    }
};
template <class Context>
struct FaultyOverCache<targets::CombineFault, Context> {
    using Type = targets::FaultyCombine<Context>;
    static constexpr bool makes(KernelFamily family) { return family == KernelFamily::fwd_splitkv_combine; }
};
template <class Context>
struct FaultyOverCache<targets::AppendFault, Context> {
    using Type = targets::FaultyAppend<Context>;
    static constexpr bool makes(KernelFamily family) { return family == KernelFamily::fwd_appendkv; }
};
template <class Context>
struct FaultyOverCache<targets::PrefillFault, Context> {
    using Type = targets::FaultyPrefill<Context>;
    static constexpr bool makes(KernelFamily family) { return family == KernelFamily::batch_prefill; }
};

/// The same of a kernel over a cache; `fault` is a CacheFault, CombineFault, AppendFault or PrefillFault.
template <class Kernel, auto fault>
struct FaultyCacheLaunch : Launch<Kernel> {
    using Base = Launch<Kernel>;
    __attribute__((device)) static void run(const typename Base::Args& args, std::int64_t block) {
        using Right = typename BlockParts<Kernel>::Context;
        using Faulty = FaultyOverCache<std::remove_const_t<decltype(fault)>, Right>;
        if constexpr (Faulty::makes(Base::family))
            run_faulty<Kernel, typename Faulty::Type>(args, block, fault);
        else
            Base::run(args, block);
    }
};

} // namespace fmha::hip_target

/// FMHA_KERNEL with a fault, by its name: FMHA_FAULTY_KERNEL(symbol, K0, last_key_dropped).
#define FMHA_FAULTY_KERNEL(symbol, Kernel, fault)                                                            \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyLaunch<Kernel, fmha::targets::Fault::fault>)
#define FMHA_FAULTY_BACKWARD_KERNEL(symbol, Kernel, fault)                                                   \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyBackwardLaunch<Kernel, fmha::targets::BackwardFault::fault>)
#define FMHA_FAULTY_CACHE_KERNEL(symbol, Kernel, fault)                                                      \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyCacheLaunch<Kernel, fmha::targets::CacheFault::fault>)
#define FMHA_FAULTY_COMBINE_KERNEL(symbol, Kernel, fault)                                                    \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyCacheLaunch<Kernel, fmha::targets::CombineFault::fault>)
#define FMHA_FAULTY_APPEND_KERNEL(symbol, Kernel, fault)                                                     \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyCacheLaunch<Kernel, fmha::targets::AppendFault::fault>)
#define FMHA_FAULTY_PREFILL_KERNEL(symbol, Kernel, fault)                                                    \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyCacheLaunch<Kernel, fmha::targets::PrefillFault::fault>)
