#pragma once

#include "kernels/programs/programs.hpp"
#include "kernels/targets/hip/family_context.hpp"
#include "kernels/targets/hip/ws_context.hpp"

#if defined(__HIP__)
#include "kernels/targets/hip/amd/machine.hpp"
#elif defined(__CUDACC__)
#include "kernels/targets/hip/nvidia/team_machine.hpp"
#endif

/// What a generated source includes: one exported kernel per configuration.
namespace fmha::hip_target {

template <class Kernel>
struct Launch {
    static constexpr KernelFamily family = Kernel::config().signature.family;
    using Program = kernels::Program<family>;
    using Args = typename Program::Args;
    static constexpr auto plan = Planned<Kernel>::plan;
    static constexpr bool has_teams = Planned<Kernel>::has_teams;
    static_assert(plan.problem == PlanProblem::none, "this target has no plan for the configuration");
    static constexpr int threads = plan.threads;
    static constexpr int lds_bytes = plan.lds_bytes;
    /// Blocks of one warp that NVIDIA's assembler makes room for on a multiprocessor: asked for none, it spills before it takes the
    /// registers that are free. 0 leaves it to the assembler. Warp groups trade registers where a block is told to be alone.
    static constexpr int blocks_at_once = has_teams ? 1 : threads <= 32 ? 4 : 0;
#if defined(__HIP__)
    using Machine = amd::Machine<threads, lds_bytes>;
#else
    using Machine = nvidia::Machine<threads>;
#endif

    __attribute__((device, always_inline)) static void run(const Args& args, std::int64_t block) {
        const auto item = typename Program::Grid(Constant<Kernel>::cfg(), args)[block];
#if !defined(__HIP__)
        if constexpr (has_teams) {
            using Machine = nvidia::TeamMachine<plan.feed_registers, plan.team_registers>;
            Machine machine;
            WsContext<Machine, Constant<Kernel>> context(machine, {});
            kernels::fmha_fwd_ws(context, args, item);
            return;
        } else
#endif
        {
            Machine machine;
            typename FamilyContext<family>::template Type<Machine, Constant<Kernel>> context(machine, {});
            Program::run(context, args, item);
        }
    }
};

} // namespace fmha::hip_target

// The arguments behind the symbol are a launch: Args, threads, blocks_at_once and run(args, block).
#if defined(__HIP__)
// AMD: the arguments are read where they lie, when they are needed; as a parameter all of them would be loaded first.
#define FMHA_LAUNCH(symbol, ...)                                                                             \
    extern "C" __attribute__((global))                                                                       \
    __attribute__((amdgpu_flat_work_group_size(__VA_ARGS__::threads, __VA_ARGS__::threads))) void            \
    symbol(const __VA_ARGS__::Args) {                                                                        \
        __VA_ARGS__::run(*(const __VA_ARGS__::Args*)__builtin_amdgcn_kernarg_segment_ptr(),                  \
                         __builtin_amdgcn_workgroup_id_x());                                                 \
    }
#else
#define FMHA_LAUNCH(symbol, ...)                                                                             \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__::threads, __VA_ARGS__::blocks_at_once)          \
        symbol(const __grid_constant__ __VA_ARGS__::Args args) {                                             \
        __VA_ARGS__::run(args, blockIdx.x);                                                                  \
    }
#endif

#define FMHA_KERNEL(symbol, Kernel) FMHA_LAUNCH(symbol, fmha::hip_target::Launch<Kernel>)
