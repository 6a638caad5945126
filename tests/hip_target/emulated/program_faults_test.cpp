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
#include "kernels/targets/hip/emulated/executor.hpp"
#include "tests/hip_target/emulated/emulated_kernels.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace fmha::hip_target::test {
namespace {

using harness::Outcome;
using targets::Fault;

void emulate_with_fault(const KernelConfig& config, const FwdArgs& args, Fault fault) {
    emulate_blocks(
        kernels::Program<KernelFamily::fwd>{}, config, args, {},
        [](const MachineShape& shape) { return EmulatedMachine(shape); },
        [fault](EmulatedMachine& machine, const RunTime& setup) {
            using Right = BlockContext<EmulatedMachine, RunTime>;
            return targets::FaultyContext<Right, targets::RunTimeFault>({fault}, machine, setup);
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

using FaultOn = std::tuple<const char*, CaughtBy>;
class EveryFault : public testing::TestWithParam<FaultOn> {};

TEST_P(EveryFault, IsCaught) {
    const auto& [arch, row] = GetParam();
    const auto cases = harness::load_cases({row.case_name}, {.root = FMHA_CASES_DIR});
    ASSERT_EQ(cases.size(), 1U) << row.case_name;
    harness::CaseRunOptions options;
    options.arch = arch;

    const auto planned =
        harness::house_kernels(harness::make_target("emulated", {.arch = arch, .kernels_dir = {}}));
    const auto right = harness::run_case(cases[0], *planned, options).at(0);
    ASSERT_EQ(right.outcome, Outcome::passed) << right.message;

    const KernelConfig kernel =
        planned->planned(harness::to_problem(cases[0], options.arch), nullptr).instance->config();
    const ExactKernel faulty(kernel, [fault = row.fault](const KernelConfig& config, const FwdArgs& args) {
        emulate_with_fault(config, args, fault);
    });
    const auto wrong = harness::run_case(cases[0], faulty, options).at(0);
    EXPECT_EQ(wrong.outcome, Outcome::failed);
    RecordProperty("gate", wrong.message);
}

INSTANTIATE_TEST_SUITE_P(Emulated, EveryFault,
                         testing::Combine(testing::Values("gfx942", "sm_90"), testing::ValuesIn(table())),
                         [](const auto& param) {
                             return std::string(std::get<0>(param.param)) + "_" +
                                    std::string(to_string(std::get<1>(param.param).fault));
                         });

TEST(FaultTable, HasEveryFaultOnce) {
    const auto rows = table();
    ASSERT_EQ(rows.size(), EnumTable<Fault>::names.size());
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].fault, EnumTable<Fault>::names[i].value);
}

} // namespace
} // namespace fmha::hip_target::test
