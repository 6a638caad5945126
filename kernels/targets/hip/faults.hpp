#pragma once

#include "dispatcher/types/enums.hpp"
#include "kernels/targets/faulty_append.hpp"
#include "kernels/targets/faulty_backward.hpp"
#include "kernels/targets/faulty_cache.hpp"
#include "kernels/targets/faulty_combine.hpp"
#include "kernels/targets/faulty_context.hpp"
#include "kernels/targets/faulty_prefill.hpp"
#include "kernels/targets/hip/entry.hpp"
#include "kernels/targets/hip/faulty_ws.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

/// Kernels with known mistakes, for devices. Nothing that a user builds includes this.
namespace fmha::hip_target {

/// Which of its mistakes a kernel makes: a variable of its code object, in which tests/hip_target/choose_fault.py finds the
/// name's number and writes it. One compilation serves all mistakes. Compiled to make none.
template <class Fault>
struct FaultChoice {
    static constexpr std::size_t mark_bytes = 16, name_bytes = 32;
    static constexpr std::uint32_t none = 0xFFFFFFFFU;
    static constexpr std::size_t faults = EnumTable<Fault>::names.size();

    std::array<char, mark_bytes> mark{};
    std::uint32_t chosen = none;
    std::uint32_t count = faults;
    std::array<std::array<char, name_bytes>, faults> names{}; ///< by number

    constexpr FaultChoice() {
        copy(mark, "fmha makes fault");
        for (const auto& [fault, name] : EnumTable<Fault>::names)
            copy(names[static_cast<std::size_t>(fault)], name);
    }

  private:
    template <std::size_t size>
    static constexpr void copy(std::array<char, size>& to, std::string_view text) {
        for (std::size_t n = 0; n < text.size(); ++n) to[n] = text[n];
    }
};

/// Volatile, so that the compiler takes no value for known.
template <class Fault>
__attribute__((device)) volatile FaultChoice<Fault> fault_choice = FaultChoice<Fault>();

template <class Fault>
__attribute__((device)) Fault chosen_fault() {
    return static_cast<Fault>(fault_choice<Fault>.chosen);
}

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
template <class Kernel>
struct FaultyLaunch : Launch<Kernel> {
    __attribute__((device)) static void run(const typename Launch<Kernel>::Args& args, std::int64_t block) {
        run_faulty<Kernel, targets::FaultyContext<typename BlockParts<Kernel>::Context>>(
            args, block, chosen_fault<targets::Fault>());
    }
};

/// The same of a warp-specialised kernel, with a mistake of its feed, its teams or their machine.
template <class Kernel>
struct FaultyTeamLaunch : Launch<Kernel> {
    __attribute__((device)) static void run(const typename Launch<Kernel>::Args& args, std::int64_t block) {
        using Parts = BlockParts<Kernel>;
        using Machine = FaultyTeamMachine<typename Parts::Machine>;
        const WsFault fault = chosen_fault<WsFault>();
        Machine machine(fault, Parts::machine(args));
        FaultyWs<WsContext<Machine, Constant<Kernel>>> context(fault, machine, Constant<Kernel>{});
        Parts::run(context, args, block);
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
template <class Kernel>
struct FaultyBackwardLaunch : Launch<Kernel> {
    __attribute__((device)) static void run(const BwdArgs& args, std::int64_t block) {
        using Right = typename BlockParts<Kernel>::Context;
        run_faulty<Kernel, typename FaultyStageOf<Launch<Kernel>::family, Right>::Type>(
            args, block, chosen_fault<targets::BackwardFault>(), args);
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
        const ApiTraits& api = api_traits_of(family);
        return api.attends && api.reads_cache && !api.lists_pages && !traits_of(family).combines_splits;
    }
};
template <class Context>
struct FaultyOverCache<targets::CombineFault, Context> {
    using Type = targets::FaultyCombine<Context>;
    static constexpr bool makes(KernelFamily family) { return traits_of(family).combines_splits; }
};
template <class Context>
struct FaultyOverCache<targets::AppendFault, Context> {
    using Type = targets::FaultyAppend<Context>;
    static constexpr bool makes(KernelFamily family) { return api_traits_of(family).stores_keys; }
};
template <class Context>
struct FaultyOverCache<targets::PrefillFault, Context> {
    using Type = targets::FaultyPrefill<Context>;
    static constexpr bool makes(KernelFamily family) { return api_traits_of(family).lists_pages; }
};

/// The same of a kernel over a cache; `Fault` is CacheFault, CombineFault, AppendFault or PrefillFault.
template <class Kernel, class Fault>
struct FaultyCacheLaunch : Launch<Kernel> {
    using Base = Launch<Kernel>;
    __attribute__((device)) static void run(const typename Base::Args& args, std::int64_t block) {
        using Right = typename BlockParts<Kernel>::Context;
        using Faulty = FaultyOverCache<Fault, Right>;
        if constexpr (Faulty::makes(Base::family))
            run_faulty<Kernel, typename Faulty::Type>(args, block, chosen_fault<Fault>());
        else
            Base::run(args, block);
    }
};

} // namespace fmha::hip_target

/// FMHA_KERNEL with faults, of which `choose_fault.py` chooses one.
#define FMHA_FAULTY_KERNEL(symbol, Kernel) FMHA_LAUNCH(symbol, fmha::hip_target::FaultyLaunch<Kernel>)
#define FMHA_FAULTY_TEAM_KERNEL(symbol, Kernel)                                                              \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyTeamLaunch<Kernel>)
#define FMHA_FAULTY_BACKWARD_KERNEL(symbol, Kernel)                                                          \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyBackwardLaunch<Kernel>)
#define FMHA_FAULTY_CACHE_KERNEL(symbol, Kernel)                                                             \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyCacheLaunch<Kernel, fmha::targets::CacheFault>)
#define FMHA_FAULTY_COMBINE_KERNEL(symbol, Kernel)                                                           \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyCacheLaunch<Kernel, fmha::targets::CombineFault>)
#define FMHA_FAULTY_APPEND_KERNEL(symbol, Kernel)                                                            \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyCacheLaunch<Kernel, fmha::targets::AppendFault>)
#define FMHA_FAULTY_PREFILL_KERNEL(symbol, Kernel)                                                           \
    FMHA_LAUNCH(symbol, fmha::hip_target::FaultyCacheLaunch<Kernel, fmha::targets::PrefillFault>)
