#pragma once

#include "dispatcher/system/parallel.hpp"
#include "kernels/programs/fmha_fwd_ws.hpp"
#include "kernels/targets/hip/emulated/executor.hpp"
#include "kernels/targets/hip/emulated/team_machine.hpp"
#include "kernels/targets/hip/ws_context.hpp"

#include <type_traits>

namespace fmha::hip_target {

/// Blocks that a launch of `items` items has here, so that most compute more than one and some do not fill the last round.
inline std::int64_t emulated_blocks(std::int64_t items) {
    return (items + 2) / 3;
}

/// Runs a warp-specialised program over all blocks, each with a feed and teams of its own under `schedule`. `make_machine(block, unit,
/// maps, agent)` builds the machine of one of them, `make_context(machine, setup)` its context. Throws UnsupportedInvocation for tensors
/// that have no map, and like emulate_blocks.
template <kernels::HasTeams Args, class MakeMachine, class MakeContext>
void emulate_teams(const KernelConfig& config, const Args& args, int threads, Schedule schedule,
                   MakeMachine make_machine, MakeContext make_context) {
    const kernels::WsGrid each(config, args), grid = each.dealt_to(emulated_blocks(each.size()));
    const RunTimePlan<WsPlan> setup(config, ws_plan_of(config));
    const WsMaps maps = ws_maps_of(config, args);
    if (maps.problem) throw UnsupportedInvocation(to_sentence(*maps.problem));
    const auto on_thread = [&](int) {
        return [&](std::int64_t n) {
            const kernels::BlockItems items{grid, static_cast<std::uint32_t>(n),
                                            kernels::WsGrid::reorders<Args>(config.signature)};
            const WsPlan& plan = setup.plan();
            const int transposing = plan.transposers * plan.wave_size;
            TeamBlock block(plan.lds_bytes, plan.teams + (transposing > 0 ? 2 : 1), WsPlan::group_threads,
                            schedule, static_cast<std::uint64_t>(n), transposing);
            block.split_registers(plan.feed_registers, plan.team_registers);
            try {
                block.run([&](int agent) {
                    auto machine = make_machine(block, plan.unit, maps, agent);
                    auto context = make_context(machine, setup);
                    kernels::fmha_fwd_ws(context, args, items);
                });
            } catch (const EmulationError& error) {
                throw in_block(error, items[0]);
            }
        };
    };
    system::parallel_with(grid.blocks, on_thread, threads);
}

/// The same with the context that a kernel has.
template <kernels::HasTeams Args, class MakeMachine>
void emulate_teams(const KernelConfig& config, const Args& args, int threads, Schedule schedule,
                   MakeMachine make_machine) {
    emulate_teams(config, args, threads, schedule, make_machine, [](auto& machine, const auto& setup) {
        return WsContext<std::remove_cvref_t<decltype(machine)>, RunTimePlan<WsPlan>>(machine, setup);
    });
}

} // namespace fmha::hip_target
