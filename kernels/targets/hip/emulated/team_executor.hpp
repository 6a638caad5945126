#pragma once

#include "dispatcher/system/parallel.hpp"
#include "kernels/programs/fmha_fwd.hpp"
#include "kernels/targets/hip/emulated/executor.hpp"
#include "kernels/targets/hip/emulated/team_machine.hpp"
#include "kernels/targets/hip/ws_context.hpp"

namespace fmha::hip_target {

/// Runs warp-specialised forward over all blocks, each with a feed and teams of its own under `schedule`. `make_machine(block, unit,
/// maps, agent)` builds the machine of one of them. Throws UnsupportedInvocation for tensors that have no map, and like emulate_blocks.
template <class MakeMachine>
void emulate_teams(const KernelConfig& config, const FwdArgs& args, int threads, Schedule schedule,
                   MakeMachine make_machine) {
    const kernels::FwdGrid grid(config, args);
    const RunTimePlan<WsPlan> setup(config, ws_plan_of(config));
    const WsMaps maps = ws_maps_of(config, args);
    if (maps.problem) throw UnsupportedInvocation(to_sentence(*maps.problem));
    const auto on_thread = [&](int) {
        return [&](std::int64_t n) {
            const kernels::FwdItem item = grid[n];
            const WsPlan& plan = setup.plan();
            TeamBlock block(plan.lds_bytes, plan.teams + 1, WsPlan::group_threads, schedule,
                            static_cast<std::uint64_t>(n));
            try {
                block.run([&](int agent) {
                    auto machine = make_machine(block, plan.unit, maps, agent);
                    WsContext<decltype(machine), RunTimePlan<WsPlan>> context(machine, setup);
                    kernels::fmha_fwd_ws(context, args, item);
                });
            } catch (const EmulationError& error) {
                throw in_block(error, item);
            }
        };
    };
    system::parallel_with(grid.size(), on_thread, threads);
}

} // namespace fmha::hip_target
