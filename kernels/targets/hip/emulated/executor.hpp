#pragma once

#include "dispatcher/system/parallel.hpp"
#include "kernels/programs/fwd_grid.hpp"
#include "kernels/targets/hip/block_context.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/emulated/machine.hpp"

namespace fmha::hip_target {

/// The machine that a plan asks for.
inline MachineShape machine_shape(const BlockPlan& plan) {
    return {plan.unit, plan.threads, plan.wave_size, plan.lds_bytes, false};
}

/// `error` with the block in which it happened.
EmulationError in_block(const EmulationError& error, const kernels::FwdItem& item);

/// Runs the forward program over all blocks. Each thread of the processor has a machine of its own, from
/// `make_machine(shape)`, and every block a context, from `make_context(machine, setup)`. Throws what the first block, in
/// the order of the grid, throws; an EmulationError says which block that is.
template <class MakeMachine, class MakeContext>
void emulate_blocks(const KernelConfig& config, const FwdArgs& args, const EmulationOptions& options,
                    MakeMachine make_machine, MakeContext make_context) {
    const kernels::FwdGrid grid(config, args);
    const RunTime setup(config);
    const auto on_thread = [&](int) {
        return [&, machine = make_machine(machine_shape(setup.plan()))](std::int64_t n) mutable {
            machine.begin();
            auto context = make_context(machine, setup);
            try {
                kernels::fmha_fwd(context, args, grid[n]);
            } catch (const EmulationError& error) {
                throw in_block(error, grid[n]);
            }
        };
    };
    system::parallel_with(grid.size(), on_thread, options.threads);
}

} // namespace fmha::hip_target
