// What the parts of a block share on the emulated machine, by itself: meetings, phases, registers, maps and descriptors.

#include "kernels/targets/hip/emulated/team_machine.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fmha::hip_target::test {
namespace {

constexpr int lds_bytes = 4096, group_threads = 128;

std::optional<Hazard> hazard_of(int agents, Schedule schedule,
                                const std::function<void(TeamBlock&, int)>& body) {
    TeamBlock block(lds_bytes, agents, group_threads, schedule, 1);
    try {
        block.run([&](int agent) { body(block, agent); });
    } catch (const EmulationError& error) {
        return error.hazard();
    }
    return std::nullopt;
}

class TeamBlocks : public testing::TestWithParam<int> {
  protected:
    const Schedule schedule = static_cast<Schedule>(GetParam());
    std::optional<Hazard> hazard(int agents, const std::function<void(TeamBlock&, int)>& body) const {
        return hazard_of(agents, schedule, body);
    }
};
INSTANTIATE_TEST_SUITE_P(Teams, TeamBlocks, testing::Range(0, schedules));

TEST_P(TeamBlocks, MeetAsOftenAsTheyLike) {
    constexpr int agents = 3, meetings = 4;
    std::vector<int> came;
    EXPECT_EQ(hazard(agents,
                     [&](TeamBlock& block, int agent) {
                         for (int n = 0; n < meetings; ++n) {
                             came.push_back(n);
                             block.meet(agent);
                         }
                     }),
              std::nullopt);
    // Nobody comes to a meeting before all have left the one before.
    ASSERT_EQ(came.size(), std::size_t{agents * meetings});
    for (std::size_t i = 0; i < came.size(); ++i) EXPECT_EQ(came[i], static_cast<int>(i) / agents) << i;
}

TEST_P(TeamBlocks, KnowAPhaseFromTheNextOnly) {
    // Agent 1 sees one phase end, and looks again when two more have.
    const auto phases = [&](int unseen) {
        return hazard(2, [unseen](TeamBlock& block, int agent) {
            if (agent == 0) block.init_barrier(0, 1);
            block.meet(agent);
            if (agent == 0) {
                block.arrive(0, 0, 1);
                block.meet(0);
                for (int n = 0; n < unseen; ++n) block.arrive(0, 0, 1);
                block.meet(0);
            } else {
                block.wait(1, 0, 0);
                block.meet(1);
                block.meet(1);
                block.wait(1, 0, unseen % 2 == 1 ? 1 : 0);
            }
        });
    };
    EXPECT_EQ(phases(1), std::nullopt);
    EXPECT_EQ(phases(2), Hazard::phase_lost);
    EXPECT_EQ(phases(3), Hazard::phase_lost);
}

TEST_P(TeamBlocks, ShareTheRegistersOfTheirBlock) {
    const auto split = [&](int agents, int feed, int team) {
        return hazard(agents, [=](TeamBlock& block, int agent) {
            if (agent == 0) block.split_registers(feed, team);
            block.meet(agent);
            agent == 0 ? block.release_registers(agent) : block.claim_registers(agent);
        });
    };
    EXPECT_EQ(split(3, 40, 232), std::nullopt);
    EXPECT_EQ(split(3, 24, 240), std::nullopt);
    EXPECT_EQ(split(3, 32, 240), Hazard::registers_exceeded) << "of 64512, not 65536";
    EXPECT_EQ(split(4, 32, 160), std::nullopt);
    EXPECT_EQ(split(4, 40, 160), Hazard::registers_exceeded);
}

TEST_P(TeamBlocks, WaitForRegistersThatNobodyReleases) {
    EXPECT_EQ(hazard(3,
                     [](TeamBlock& block, int agent) {
                         if (agent == 0) block.split_registers(40, 232);
                         block.meet(agent);
                         if (agent > 0) block.claim_registers(agent);
                     }),
              Hazard::deadlock);
}

TEST(TeamBlock, CopiesByMapsThatDriversEncode) {
    alignas(16) static std::array<std::uint16_t, 64> memory{};
    const auto copy = [](const std::function<void(TensorMapSpec&)>& change) {
        TensorMapSpec map{.base = memory.data(),
                          .extents = {64, 1, 1, 1, 1},
                          .strides = {2, 128, 16, 16, 16},
                          .box = {64, 1, 1, 1, 1}};
        change(map);
        return hazard_of(1, Schedule::in_turn, [&](TeamBlock& block, int agent) {
            block.init_barrier(1024, 1);
            block.expect(agent, 1024, 128);
            block.copy_box(agent, map, {}, 0, 1024);
            block.wait(agent, 1024, 0);
        });
    };
    EXPECT_EQ(copy([](TensorMapSpec&) {}), std::nullopt);
    EXPECT_EQ(copy([](TensorMapSpec& map) { map.base = nullptr; }), Hazard::map_invalid);
    EXPECT_EQ(copy([](TensorMapSpec& map) { map.strides[1] = 136; }), Hazard::map_invalid);
    EXPECT_EQ(copy([](TensorMapSpec& map) { map.strides[2] = 0; }), Hazard::map_invalid);
    EXPECT_EQ(copy([](TensorMapSpec& map) { map.box[1] = 257; }), Hazard::map_invalid);
}

/// What a machine of agent `number` says to `body`.
std::optional<Hazard> of_machine(int number, const std::function<void(EmulatedTeamMachine&)>& body) {
    static const WsMaps maps;
    return hazard_of(2, Schedule::in_turn, [&](TeamBlock& block, int agent) {
        EmulatedTeamMachine machine(block, MatrixUnit::nvidia, maps, agent);
        machine.init_barrier(0, 1);
        machine.barriers_ready();
        if (agent == number) body(machine);
    });
}

TEST(TeamMachine, TakesDescriptorsOfFirstLines) {
    const auto described = [](int address) {
        return of_machine(
            1, [address](EmulatedTeamMachine& machine) { (void)machine.descriptor(address, 16, 1024); });
    };
    EXPECT_EQ(described(2048), std::nullopt);
    EXPECT_EQ(described(2048 + 96), std::nullopt) << "further on in the line";
    EXPECT_EQ(described(2048 + 128), Hazard::descriptor_misaligned);
    EXPECT_EQ(described(2048 + 8), Hazard::descriptor_misaligned);
}

TEST(TeamMachine, KnowsOneThreadFromAWarpGroup) {
    EXPECT_EQ(of_machine(1, [](EmulatedTeamMachine& machine) { machine.pass(1); }), std::nullopt);
    EXPECT_EQ(of_machine(1, [](EmulatedTeamMachine& machine) { machine.expect(0, 0); }),
              Hazard::team_diverged);
    const auto alone = [](auto operation) {
        return of_machine(0, [operation](EmulatedTeamMachine& machine) {
            if (machine.leads(1)) operation(machine);
        });
    };
    EXPECT_EQ(alone([](EmulatedTeamMachine& machine) { machine.expect(0, 0); }), std::nullopt);
    EXPECT_EQ(alone([](EmulatedTeamMachine& machine) { machine.pass(1); }), Hazard::team_diverged);
    EXPECT_EQ(alone([](EmulatedTeamMachine& machine) { machine.arrive_wave(0, true); }),
              Hazard::team_diverged);
    EXPECT_EQ(alone([](EmulatedTeamMachine& machine) { machine.release_registers(); }),
              Hazard::team_diverged);
}

} // namespace
} // namespace fmha::hip_target::test
