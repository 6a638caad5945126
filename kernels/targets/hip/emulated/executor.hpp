#pragma once

#include "dispatcher/system/parallel.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/emulated/machine.hpp"
#include "kernels/targets/hip/family_context.hpp"

#include <string>

namespace fmha::hip_target {

/// The machine that a plan asks for.
inline MachineShape machine_shape(const BlockShape& plan) {
    return {plan.unit, plan.threads, plan.wave_size, plan.lds_bytes, false};
}

/// `error` with the block in which it happened.
template <Fielded Item>
EmulationError in_block(const EmulationError& error, const Item& item) {
    std::string block;
    each_field(item, [&](std::string_view name, const auto& number) {
        block += ' ' + std::string(name) + '=' + field_text(number);
    });
    return {error.hazard(), error.sentence() + " (block" + block + ")"};
}

/// Runs a program over all blocks. Each thread of the processor has a machine of its own, from `make_machine(shape)`, and
/// every block a context, from `make_context(machine, setup)`. Throws the exception that the first block, in the order of the grid,
/// throws; an EmulationError says which block that is.
template <KernelFamily family, class MakeMachine, class MakeContext>
void emulate_blocks(kernels::Program<family>, const KernelConfig& config,
                    const typename kernels::Program<family>::Args& args, const EmulationOptions& options,
                    MakeMachine make_machine, MakeContext make_context) {
    using Program = kernels::Program<family>;
    const typename Program::Grid grid(config, args);
    const RunTimeOf<family> setup(config);
    const auto on_thread = [&](int) {
        return [&, machine = make_machine(machine_shape(setup.plan()))](std::int64_t n) mutable {
            const typename Program::Item item = grid[n];
            machine.begin();
            auto context = make_context(machine, setup);
            try {
                Program::run(context, args, item);
            } catch (const EmulationError& error) {
                throw in_block(error, item);
            }
        };
    };
    system::parallel_with(grid.size(), on_thread, options.threads);
}

} // namespace fmha::hip_target
