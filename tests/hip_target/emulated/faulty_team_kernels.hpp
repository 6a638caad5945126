#pragma once

#include "kernels/targets/faulty_teams.hpp"
#include "kernels/targets/hip/emulated/team_executor.hpp"

namespace fmha::hip_target::test {

/// Teams whose contexts `make(machine, setup)` makes.
template <class MakeContext>
void emulate_teams_with(const KernelConfig& config, const FwdArgs& args, Schedule schedule,
                        MakeContext make) {
    emulate_teams(
        config, args, 1, schedule,
        [](TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent) {
            return EmulatedTeamMachine(block, unit, maps, agent);
        },
        make);
}

using TeamSetup = RunTimePlan<WsPlan>;
using TeamContext = WsContext<EmulatedTeamMachine, TeamSetup>;

inline void emulate_teams_with_fault(const KernelConfig& config, const FwdArgs& args,
                                     targets::TeamFault fault, Schedule schedule = Schedule::in_turn) {
    emulate_teams_with(config, args, schedule, [fault](EmulatedTeamMachine& machine, const TeamSetup& setup) {
        return targets::FaultyTeams<TeamContext>(fault, machine, setup);
    });
}

} // namespace fmha::hip_target::test
