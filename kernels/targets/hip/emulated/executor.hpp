#pragma once

#include "kernels/programs/fwd_grid.hpp"
#include "kernels/targets/hip/block_context.hpp"
#include "kernels/targets/hip/emulated/emulated_target.hpp"
#include "kernels/targets/hip/emulated/machine.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace fmha::hip_target {

/// The machine that a plan asks for.
inline MachineShape machine_shape(const BlockPlan& plan) {
    return {plan.unit, plan.threads, plan.wave_size, plan.lds_bytes, false};
}

/// `error` with the block in which it happened.
EmulationError in_block(const EmulationError& error, const kernels::FwdItem& item);

/// Runs the forward program over all blocks. Each thread of the processor has a machine of its own, from
/// `make_machine(shape)`, and every block a context, from `make_context(machine, setup)`. Throws the EmulationError of
/// the first block, in the order of the grid, that has one.
template <class MakeMachine, class MakeContext>
void emulate_blocks(const KernelConfig& config, const FwdArgs& args, const EmulationOptions& options,
                    MakeMachine make_machine, MakeContext make_context) {
    const kernels::FwdGrid grid(config, args);
    const RunTime setup(config);
    const std::int64_t wanted =
        options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
    const std::int64_t threads = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, grid.size()));

    std::atomic<std::int64_t> next{0};
    std::mutex guard;
    std::optional<EmulationError> error;
    std::int64_t block_of_error = grid.size();
    const auto work = [&] {
        auto machine = make_machine(machine_shape(setup.plan()));
        for (std::int64_t n = next++; n < grid.size(); n = next++) {
            machine.begin();
            auto context = make_context(machine, setup);
            try {
                kernels::fmha_fwd(context, args, grid[n]);
            } catch (const EmulationError& thrown) {
                next = grid.size();
                const std::lock_guard lock(guard);
                if (n < block_of_error) error = in_block(thrown, grid[n]);
                block_of_error = std::min(n, block_of_error);
            }
        }
    };
    {
        std::vector<std::jthread> others;
        for (std::int64_t i = 1; i < threads; ++i) others.emplace_back(work);
        work();
    }
    if (error) throw EmulationError(*error);
}

} // namespace fmha::hip_target
