// Every known mistake in the forward program, on fragments: a case of the subset fwd/faults is green on the kernel that
// is planned for it and red on the same kernel with the mistake. tests/hip_target/faults.txt says which case notices
// which mistake; tests/hip_target/gpu_faults.sh does the same on a GPU.

#include "harness/cases/case_problem.hpp"
#include "harness/cases/load.hpp"
#include "harness/run/case_runner.hpp"
#include "harness/run/catalogue_kernels.hpp"
#include "harness/run/targets.hpp"
#include "kernels/programs/programs.hpp"
#include "kernels/targets/faulty_context.hpp"
#include "kernels/targets/hip/faulty_ws.hpp"
#include "tests/hip_target/emulated/emulated_kernels.hpp"
#include "tests/hip_target/emulated/faulty_team_kernels.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace fmha::hip_target::test {
namespace {

using harness::Outcome;
using targets::Fault;
using targets::TeamFault;

void emulate_with_fault(const KernelConfig& config, const FwdArgs& args, Fault fault) {
    if (config.algorithm.pipeline == Pipeline::ws) {
        // Mistakes take turns in the schedules.
        const auto schedule = static_cast<Schedule>(static_cast<int>(fault) % schedules);
        emulate_teams_with(config, args, schedule,
                           [fault](EmulatedTeamMachine& machine, const TeamSetup& setup) {
                               return targets::FaultyContext<TeamContext>(fault, machine, setup);
                           });
        return;
    }
    emulate_blocks(
        kernels::Program<KernelFamily::fwd>{}, config, args, {},
        [](const MachineShape& shape) { return EmulatedMachine(shape); },
        [fault](EmulatedMachine& machine, const RunTime& setup) {
            using Right = BlockContext<EmulatedMachine, RunTime>;
            return targets::FaultyContext<Right>(fault, machine, setup);
        });
}

struct CaughtBy {
    Fault fault;
    std::string case_name;
};

std::vector<CaughtBy> table() {
    std::ifstream file(FMHA_FAULTS_FILE);
    std::vector<CaughtBy> rows;
    for (std::string fault, name; file >> fault >> name;) rows.push_back({*parse_enum<Fault>(fault), name});
    return rows;
}

/// A case passes on the kernel that is planned for it on `arch`, and fails when `launch` runs that kernel. Returns the kernel.
KernelConfig expect_caught(const char* arch, const std::string& case_name, const Launcher& launch) {
    const auto cases = harness::load_cases({case_name}, {.root = FMHA_CASES_DIR});
    if (cases.size() != 1) {
        ADD_FAILURE() << case_name << " is " << cases.size() << " cases";
        return {};
    }
    harness::CaseRunOptions options;
    options.arch = arch;
    const auto planned =
        harness::house_kernels(harness::make_target("emulated", {.arch = arch, .kernels_dir = {}}));
    const auto right = harness::run_case(cases[0], *planned, options).at(0);
    EXPECT_EQ(right.outcome, Outcome::passed) << right.message;
    const KernelConfig kernel =
        planned->planned(harness::to_problem(cases[0], options.arch), nullptr).instance->config();
    const auto wrong = harness::run_case(cases[0], ExactKernel(kernel, launch), options).at(0);
    EXPECT_EQ(wrong.outcome, Outcome::failed) << wrong.message;
    testing::Test::RecordProperty("gate", wrong.message);
    return kernel;
}

using FaultOn = std::tuple<const char*, CaughtBy>;
class EveryFault : public testing::TestWithParam<FaultOn> {};

TEST_P(EveryFault, IsCaught) {
    const auto& [arch, row] = GetParam();
    expect_caught(arch, row.case_name, [fault = row.fault](const KernelConfig& config, const FwdArgs& args) {
        emulate_with_fault(config, args, fault);
    });
}

INSTANTIATE_TEST_SUITE_P(Emulated, EveryFault,
                         testing::Combine(testing::Values("gfx942", "sm_90"), testing::ValuesIn(table())),
                         [](const auto& param) {
                             return std::string(std::get<0>(param.param)) + "_" +
                                    std::string(to_string(std::get<1>(param.param).fault));
                         });

struct TeamCaughtBy {
    TeamFault fault;
    const char* case_name;
};
constexpr TeamCaughtBy team_table[] = {
    {TeamFault::keys_of_previous_tile, "fwd/faults@1"},
    {TeamFault::values_of_previous_tile, "fwd/faults@1"},
    {TeamFault::values_behind_last_key,
     "fwd/faults[mode=group,seqlen_q=[33,70],seqlen_k=[97,64],physical_q=[40,96],physical_k=[128,80],"
     "length_form_q=seqlen,length_form_k=cu_seqlen]@1"},
    {TeamFault::value_channels_shifted, "fwd/faults@1"},
    {TeamFault::queries_of_first_block, "fwd/faults[seqlen_q=130]@1"},
    {TeamFault::rows_of_first_team, "fwd/faults@1"},
};

using TeamFaultIn = std::tuple<int, TeamCaughtBy>;
class EveryTeamFault : public testing::TestWithParam<TeamFaultIn> {};

TEST_P(EveryTeamFault, IsCaught) {
    const auto& [schedule, row] = GetParam();
    const KernelConfig kernel = expect_caught("sm_90", row.case_name,
                                              [fault = row.fault, order = static_cast<Schedule>(schedule)](
                                                  const KernelConfig& config, const FwdArgs& args) {
                                                  emulate_teams_with_fault(config, args, fault, order);
                                              });
    EXPECT_EQ(kernel.algorithm.pipeline, Pipeline::ws);
}

INSTANTIATE_TEST_SUITE_P(Emulated, EveryTeamFault,
                         testing::Combine(testing::Range(0, schedules), testing::ValuesIn(team_table)),
                         [](const auto& param) {
                             return std::string(to_string(std::get<1>(param.param).fault)) + "_" +
                                    std::to_string(std::get<0>(param.param));
                         });

struct WsCaughtBy {
    WsFault fault;
    std::string case_name;
};
std::vector<WsCaughtBy> ws_table() {
    std::ifstream file(FMHA_WS_FAULTS_FILE);
    std::vector<WsCaughtBy> rows;
    for (std::string fault, name; file >> fault >> name;) rows.push_back({*parse_enum<WsFault>(fault), name});
    return rows;
}

class EveryWsFault : public testing::TestWithParam<WsCaughtBy> {};

/// The mistakes that kernels make on a device are noticed by the same cases here: by the result, or by a hazard.
TEST_P(EveryWsFault, IsCaught) {
    const WsCaughtBy& row = GetParam();
    expect_caught("sm_90", row.case_name,
                  [fault = row.fault](const KernelConfig& config, const FwdArgs& args) {
                      using Machine = FaultyTeamMachine<EmulatedTeamMachine>;
                      try {
                          emulate_teams(
                              config, args, 1, Schedule::in_turn,
                              [fault](TeamBlock& block, MatrixUnit unit, const WsMaps& maps, int agent) {
                                  return Machine(fault, block, unit, maps, agent);
                              },
                              [fault](Machine& machine, const TeamSetup& setup) {
                                  return FaultyWs<WsContext<Machine, TeamSetup>>(fault, machine, setup);
                              });
                      } catch (const EmulationError&) {
                          // Named, and no result was stored.
                      }
                  });
}

INSTANTIATE_TEST_SUITE_P(Emulated, EveryWsFault, testing::ValuesIn(ws_table()),
                         [](const auto& param) { return std::string(to_string(param.param.fault)); });

TEST(FaultTable, HasEveryWsFaultOnce) {
    const auto rows = ws_table();
    ASSERT_EQ(rows.size(), EnumTable<WsFault>::names.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
        EXPECT_EQ(rows[i].fault, EnumTable<WsFault>::names[i].value);
}

TEST(FaultTable, HasEveryTeamFaultOnce) {
    ASSERT_EQ(std::size(team_table), EnumTable<TeamFault>::names.size());
    for (std::size_t i = 0; i < std::size(team_table); ++i)
        EXPECT_EQ(team_table[i].fault, EnumTable<TeamFault>::names[i].value);
}

TEST(FaultTable, HasEveryFaultOnce) {
    const auto rows = table();
    ASSERT_EQ(rows.size(), EnumTable<Fault>::names.size());
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].fault, EnumTable<Fault>::names[i].value);
}

} // namespace
} // namespace fmha::hip_target::test
