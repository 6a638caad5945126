#pragma once

#include "dispatcher/types/family_traits.hpp"
#include "kernels/programs/programs.hpp"
#include "kernels/targets/hip/family_context.hpp"
#include "kernels/targets/hip/ws_context.hpp"

#if defined(__HIP__)
#include "kernels/targets/hip/amd/machine.hpp"
#elif defined(__CUDACC__)
#include "kernels/targets/hip/nvidia/team_machine.hpp"
#endif

/// Included by generated sources: one exported kernel per configuration.
namespace fmha::hip_target {

/// The parts of a kernel's block: the kernel's parameter, the machine, the context, the program.
template <class Kernel, bool has_teams = Planned<Kernel>::has_teams>
struct BlockParts {
    static constexpr KernelFamily family = Kernel::config().signature.family;
    using Program = kernels::Program<family>;
    using Args = typename Program::Args;
#if defined(__HIP__)
    using Machine = amd::Machine<Planned<Kernel>::plan.threads, Planned<Kernel>::plan.lds_bytes>;
#else
    using Machine = nvidia::Machine<Planned<Kernel>::plan.threads>;
#endif
    using Context = typename FamilyContext<family>::template Type<Machine, Constant<Kernel>>;

    FMHA_DEVICE static Machine machine(const Args&) {
        return {};
    }
    template <class Ctx>
    FMHA_DEVICE static void run(Ctx& context, const Args& args, std::int64_t block) {
        Program::run(context, args, typename Program::Grid(Constant<Kernel>::cfg(), args)[block]);
    }
};

#if !defined(__HIP__)
/// With teams: the maps lie beside the arguments, and a block computes several items.
template <class Kernel>
struct BlockParts<Kernel, true> {
    using Program = kernels::Program<Kernel::config().signature.family>;
    using Args = WsParameter<typename Program::Args>;
    using Machine =
        nvidia::TeamMachine<Planned<Kernel>::plan.feed_registers, Planned<Kernel>::plan.team_registers>;
    using Context = WsContext<Machine, Constant<Kernel>>;

    FMHA_DEVICE static Machine machine(const Args& args) { return Machine(args.launch); }
    template <class Ctx>
    FMHA_DEVICE static void run(Ctx& context, const Args& parameter, std::int64_t block) {
        constexpr bool reordered =
            kernels::WsGrid::reorders<typename Program::Args>(Kernel::config().signature);
        kernels::fmha_fwd_ws(
            context, parameter.args,
            kernels::BlockItems{parameter.launch.grid, static_cast<std::uint32_t>(block), reordered});
    }
};
#endif

template <class Kernel>
struct Launch {
    using Parts = BlockParts<Kernel>;
    using Program = typename Parts::Program;
    using Machine = typename Parts::Machine;
    using Args = typename Parts::Args;
    static constexpr KernelFamily family = Kernel::config().signature.family;
    static constexpr auto plan = Planned<Kernel>::plan;
    static_assert(plan.problem == PlanProblem::none, "this target has no plan for the configuration");
    static constexpr int threads = plan.threads;
    static constexpr int lds_bytes = plan.lds_bytes;
    /// Blocks of one warp, or of waves with keys of their own, that NVIDIA's assembler makes room for on a multiprocessor: asked for none,
    /// it spills before it takes the registers that are free. 0 leaves it to the assembler. Warp groups trade registers where a block is
    /// told to be alone.
    static constexpr int blocks_at_once = [] {
        if (Planned<Kernel>::has_teams) return int{plan.blocks};
        if constexpr (requires { plan.key_waves; })
            if (plan.key_waves > 1) return 256 / threads;
        return threads <= 32 ? 4 : 0;
    }();

    /// Waves of a SIMD that AMD's compiler has to leave registers for; 0: as it sees fit. Masked tiles of 192 channels and 128 of values on
    /// CDNA 3 would take five registers more than two waves have, and those of batch prefill on CDNA 4 one more than three have.
    static constexpr int waves_at_once = [] {
        const KernelConfig cfg = Kernel::config();
        const Signature& has = cfg.signature;
        const Tile& tile = cfg.algorithm.tile;
        const MatrixUnit unit = matrix_unit(cfg.arch);
        const bool of_16 = has.data_type == DataType::fp16 || has.data_type == DataType::bf16;
        if (unit == MatrixUnit::cdna4 && api_traits_of(family).lists_pages && of_16 && tile.m0 == 64 &&
            tile.n1 == 128)
            return 3;
        const bool is_tile = tile.k0max == 192 && tile.n1 == 128;
        return unit == MatrixUnit::cdna3 && cfg.algorithm.pipeline == Pipeline::qr_async && is_tile &&
                       !has.has_dropout && has.mask != MaskClass::none && kernels::scales_alone(has)
                   ? 2
                   : 0;
    }();

    /// Blocks of the next kernel may come as soon as all of this one are there. The main stage of split-KV says when (KeyWaves).
    static constexpr bool next_comes_at_once = !traits_of(family).stores_splits;

    __attribute__((device, always_inline)) static void run(const Args& args, std::int64_t block) {
        Machine machine = Parts::machine(args);
        typename Parts::Context context(machine, {});
        Parts::run(context, args, block);
    }
};

} // namespace fmha::hip_target

// The arguments behind the symbol are a launch: Args, threads, blocks_at_once, waves_at_once, next_comes_at_once and run(args, block).
#if defined(__HIP__)
// AMD: the arguments are read where they lie, when they are needed; as a parameter all of them would be loaded first.
#define FMHA_LAUNCH(symbol, ...)                                                                             \
    extern "C" __attribute__((global))                                                                       \
    __attribute__((amdgpu_flat_work_group_size(__VA_ARGS__::threads, __VA_ARGS__::threads),                  \
                   amdgpu_waves_per_eu(__VA_ARGS__::waves_at_once))) void                                    \
    symbol(const __VA_ARGS__::Args) {                                                                        \
        __VA_ARGS__::run(*(const __VA_ARGS__::Args*)__builtin_amdgcn_kernarg_segment_ptr(),                  \
                         __builtin_amdgcn_workgroup_id_x());                                                 \
    }
#else
#define FMHA_LAUNCH(symbol, ...)                                                                             \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__::threads, __VA_ARGS__::blocks_at_once)          \
        symbol(const __grid_constant__ __VA_ARGS__::Args args) {                                             \
        if (__VA_ARGS__::next_comes_at_once) fmha::hip_target::nvidia::let_next_come();                      \
        fmha::hip_target::nvidia::follow();                                                                  \
        __VA_ARGS__::run(args, blockIdx.x);                                                                  \
    }
#endif

#define FMHA_KERNEL(symbol, Kernel) FMHA_LAUNCH(symbol, fmha::hip_target::Launch<Kernel>)
